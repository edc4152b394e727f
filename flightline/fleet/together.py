"""What the nodes showed together: the findings of the fabric test, which is a record of a run beside the nodes' own.

Its findings name a node each (`device.host`), or the fleet. They block like the node's own: a node that is slow with
every partner is no-go, whatever it showed alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flightline_node.model import STATUSES, UNSAID, Status

from ..store.sqlite import TOGETHER

FABRIC_HOST = TOGETHER
FABRIC = "fabric"
HOST = "host"


def by_host(record: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Host -> its findings, without the name; "" -> those about all of them. A status unknown here is UNKNOWN."""
    found: dict[str, list[dict[str, Any]]] = {}
    for finding in _findings(record):
        device = dict(finding.get("device") or {})
        host = str(device.pop(HOST, ""))
        status = STATUSES.get(str(finding.get("status")), Status.UNKNOWN)
        found.setdefault(host, []).append({**UNSAID, **finding, "status": str(status), "device": device})
    return found


def _findings(record: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (finding for finding in record.get("findings") or () if isinstance(finding, Mapping))
