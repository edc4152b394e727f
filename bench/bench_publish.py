"""Publish 1,000 node results to emulated DynamoDB: requests and CPU of this side; then 10,000 duplicate alerts.

Wanted: at most ceil(items / 25) batch requests and one digest. The table is moto's, in a process of its own: its
time is not ours, and the real service's latency is not in it.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from flightline.cloud.awsstore import AwsStore
from flightline.cloud.batches import BATCH
from flightline.cloud.clients import Clients
from flightline.store.sqlite import SqliteStore
from flightline.tell import digest as messages

from .bench_fleet import _fill
from .common import given, place

ALERTS = 10_000


def _serve(pipe: Connection) -> None:
    from tests.emulated import Cloud

    cloud = Cloud()
    cloud.table()
    pipe.send(cloud.env)
    pipe.recv()


@contextmanager
def _aws() -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=_serve, args=(theirs,), daemon=True)
    server.start()
    os.environ.update(ours.recv())
    yield
    ours.send("end")
    server.join(10)


def _counted(clients: Clients) -> Counter[str]:
    seen: Counter[str] = Counter()

    def count(request: Any, **_: Any) -> None:
        target = request.headers.get("X-Amz-Target", b"")
        text = target.decode() if isinstance(target, bytes) else str(target)
        seen[text.rpartition(".")[2]] += 1

    clients.get("dynamodb").meta.events.register("before-send", count)
    return seen


def _publish(path: Path, run_id: str, known: set[str], words: str) -> set[str]:
    clients = Clients()
    seen, store = _counted(clients), AwsStore(clients=clients)
    with SqliteStore(path, create=False) as local:
        run = local.run("bench")
        run = replace(run, run_id=run_id)
        started, cpu = time.perf_counter(), time.process_time()
        store.start(run)
        written = store.save_many(run, local.records("bench"), {}, known)
        store.finish(run_id, run.started_at, "no-go")
        took, used = time.perf_counter() - started, time.process_time() - cpu
    items, least = store.stats.items, -(-store.stats.items // BATCH)
    calls = seen["BatchWriteItem"]
    print(
        f"{len(run.hosts)} node results, {words}: {items} items in {calls} batch requests, wanted at most {least}: "
        f"ratio {calls / least:.2f}; {sum(seen.values()) - calls} other requests; "
        f"{used:.2f} s of CPU on this side ({used / len(run.hosts) * 1000:.2f} ms a node), {took:.1f} s in all"
    )
    return known | written


def _duplicates() -> None:
    def alerts() -> Iterator[messages.Alert]:
        for number in range(ALERTS):
            yield messages.Alert("i-1", "xid", "FAIL", "Xid 79: GPU has fallen off the bus", "gpu-1", at=str(number))

    started = time.process_time()
    first = messages.plan({}, alerts(), set(), "2026-11-21T10:00:00+00:00", 86_400.0)
    again = messages.plan(first.put, alerts(), set(), "2026-11-21T11:00:00+00:00", 86_400.0)
    digest = messages.Digest("made-up burst", tuple(first.tell))
    size = len(messages.render(digest))
    used = time.process_time() - started
    print(
        f"{ALERTS} duplicate alerts: {len(first.tell)} told in one digest of {size} bytes, then {len(again.tell)} told "
        f"when they all come again; ratio {len(first.tell) / ALERTS:.4f}; {used:.2f} s of CPU"
    )


def main() -> None:
    """Publish a first run, a second one of the same GPUs, and a burst of alerts."""
    nodes = given(__doc__, nodes=1000).nodes
    with place() as directory, _aws():
        path = directory / "runs.sqlite"
        _fill(path, directory, nodes)
        known = _publish(path, "first", set(), "all GPUs new")
        _publish(path, "second", known, "GPUs known")
    _duplicates()


if __name__ == "__main__":
    main()
