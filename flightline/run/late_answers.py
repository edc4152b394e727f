"""What came into the results bucket after a run had given its node up.

It is noted when the run ends where that may be, and fetched when the run is looked at again.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..contract import CALLS_PREFIX
from ..record.answers import most_bytes
from ..store.atomic import write_atomic
from ..store.replies import record_of
from ..store.sqlite import Record, Run, SqliteStore, StoreError
from .calls import OF_A_HOST, Call

if TYPE_CHECKING:
    from ..cloud.orders import Order

LOOKED_FOR = timedelta(days=1)
"""A node's answer is delivered within minutes of its deadline or not at all."""


def order_of(run: Run, deadline_s: int, how: str, calls: Iterable[Call], rows: Iterable[Record] = ()) -> Order:
    """What the hosts of some calls were asked, alike ones once."""
    from ..cloud.orders import Order

    alike: dict[str, int] = {}
    nodes = {}
    for call in calls:
        asked = {name: value for name, value in call.params.items() if name not in OF_A_HOST}
        number = alike.setdefault(json.dumps(asked, sort_keys=True), len(alike))
        nodes[call.name] = (number, call.host, str(call.params["call_id"]))
    return Order(run, deadline_s, how, [json.loads(text) for text in alike], nodes, list(rows))


def leave_note(store: Path, run: Run, given_up: Iterable[Call], at: Mapping[str, str]) -> None:
    """Remember where answers of given-up hosts may still come to. at: what OF_A_STACK names; empty for nowhere."""
    calls = list(given_up)
    if not calls or not at:
        return
    from ..cloud import orders

    order = base64.b64encode(orders.pack(order_of(run, 0, "", calls))).decode("ascii")
    note = {"region": at["region"], "bucket": at["results_bucket"], "order": order}
    with suppress(OSError):  # the verdict does not depend on it
        write_atomic(_note(store, run.run_id), json.dumps(note).encode())


def fetch(store: SqliteStore, run_id: str) -> list[str]:
    """Bring what has come for a run into the store; what is to be said of it, in sentences."""
    path = _note(store.path, run_id)
    if not path.is_file():
        return []
    from ..cloud import orders
    from ..cloud.clients import Clients, explain, is_aws_error

    try:
        note = json.loads(path.read_text(encoding="utf-8"))
        order = orders.unpack(base64.b64decode(note["order"]))
        if datetime.now(timezone.utc) - datetime.fromisoformat(order.run.started_at) > LOOKED_FOR:
            return []
        known = {str(record["host"]) for record in store.late(run_id)}
        if any(host not in known for _, host, _ in order.nodes.values()):
            clients = Clients(note["region"])
            for record in _came(clients.get("s3"), clients.get("ssm"), note["bucket"], order, known):
                store.save_late_record(run_id, record)
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [f"{path}: saw {type(error).__name__}: {error}; wanted where run {run_id} was asked; nothing is fetched"]
    except Exception as error:
        if not (isinstance(error, StoreError) or is_aws_error(error)):
            raise
        why = str(error) if isinstance(error, StoreError) else explain(error, f"s3://{note['bucket']}")
        return [f"what came late could not be fetched: {why}"]
    return []


def _came(s3: Any, ssm: Any, bucket: str, order: Order, known: set[str]) -> Iterator[Record]:
    from .launchers.ssm import own_output, vouched

    expected = order.expected()
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{CALLS_PREFIX}{order.run.run_id}/")
    for one in (one for page in pages for one in page.get("Contents", ())):
        words = one["Key"].split("/")
        name = words[-4] if words[-1] == "stdout" and len(words) > 4 else ""
        host = order.nodes[name][1] if name in order.nodes else ""
        if not host or host in known:
            continue
        params = order.params(name)
        most = most_bytes(bool(params.get("return_bundle")))
        if int(one["Size"]) > 2 * most:
            continue
        text = s3.get_object(Bucket=bucket, Key=one["Key"])["Body"].read().decode("utf-8", "replace")
        reply = vouched(Call(host, name, params), text, own_output(ssm, words[-5], name))
        if reply.answer is not None:
            yield record_of(expected[host], params, reply, order.run.started_at)


def _note(store: Path, run_id: str) -> Path:
    return store.parent / "late" / f"{run_id}.json"


__all__ = ["fetch", "leave_note", "order_of"]
