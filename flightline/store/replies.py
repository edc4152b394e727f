"""The row of a host that a launcher asked, from what came of it: one way for every launcher and for the function."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ..record.answers import admitted, asked_of
from ..record.outputs import HostReply
from .rows import broken_record, unreachable_record
from .sqlite import ExpectedHost, Record


def record_of(host: ExpectedHost, params: Mapping[str, Any], reply: HostReply, asked_at: str = "") -> Record:
    """Its record, or the row that says why there is none. params: what it was asked. asked_at: when its run began."""
    if reply.lost:
        return unreachable_record(host, reply.trouble)
    if reply.answer is None:
        return broken_record(host, reply.trouble)
    begun = datetime.fromisoformat(asked_at).timestamp() if asked_at else 0.0
    result = admitted(dict(reply.answer), asked_of(params, begun), bool(params.get("return_bundle")))
    if result.get("failed"):
        return broken_record(host, str(result["msg"]))
    record = result["record"]
    return {**record, "host": host.host, "instance_id": record.get("instance_id") or host.instance_id}
