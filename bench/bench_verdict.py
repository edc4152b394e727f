"""10,000 nodes judged by the verdict function: 5 % silent, 1 % late, 1 % duplicate (wanted: 10 s, 500 MB, no row lost).

Real records of simulated nodes under their own names, as the outputs that Run Command leaves in the bucket. The
function runs in this process, as in Lambda; S3, DynamoDB and SNS are moto's server in a process of its own, on the same
cores: its time is in the wall time and not in the CPU. Write units are counted from the items, with indexes' copies.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import random
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import boto3

from bench.bench_fleet import TYPE, _template, _variant
from flightline.cloud import items, orders
from flightline.cloud.awsstore import AwsStore
from flightline.cloud.clients import config
from flightline.cloud.functions.common import services
from flightline.cloud.functions.verdict import handler
from flightline.contract import CALLS_PREFIX
from flightline.record.outputs import BEGUN, ENDED
from flightline.store.sqlite import ExpectedHost, Run, now_stamp
from flightline_node.inputs import defaults
from flightline_node.tell.frames import frames

RUN, BUCKET, TABLE, QUEUE = "20261121T100000Z-bench0", "bench-results", "results", "bench-verdict-events"
SILENT, LATE, TWICE = 0.05, 0.01, 0.01
BATCH = 200
WRITE_UNIT_BYTES = 1024
USD_A_MILLION = {"write units": 0.625, "PUT": 5.0, "LIST": 5.0, "GET": 0.4}
"""us-east-1, on demand. Source: AWS price lists of DynamoDB and S3, 2025."""


def _serve(pipe: Connection) -> None:
    from tests.emulated import Cloud

    cloud = Cloud()
    cloud.table(TABLE)
    cloud.bucket(BUCKET)
    topic, _ = cloud.topic("bench-alerts")
    queue = cloud.client("sqs").create_queue(QueueName=QUEUE)["QueueUrl"]
    pipe.send((cloud.env, topic, queue))
    while pipe.recv() == "count":
        pipe.send(dict(cloud.seen))
    cloud.close()


def _output(record: Mapping[str, Any]) -> bytes:
    sent = {name: value for name, value in record.items() if name != "admitted"}
    name = record["instance_id"]
    return "\n".join([f"{BEGUN} {name}", *frames(json.dumps({"record": sent})), f"{ENDED} 0", ""]).encode()


def _key(name: str, command: str = "c-1") -> str:
    return f"{CALLS_PREFIX}{RUN}/{command}/{name}/awsrunShellScript/ask/stdout"


def _events(keys: Iterable[str]) -> list[dict[str, Any]]:
    """The queue's messages of objects, a batch each."""
    made, batch = [], []
    for number, key in enumerate(keys):
        body = {"Records": [{"s3": {"bucket": {"name": BUCKET}, "object": {"key": key}}}]}
        message = {"eventSource": "aws:sqs", "messageId": str(number), "receiptHandle": "r", "body": json.dumps(body)}
        batch.append(message)
        if len(batch) == BATCH:
            made.append({"Records": batch})
            batch = []
    return [*made, {"Records": batch}] if batch else made


def _write_units(made: Iterable[Mapping[str, Any]]) -> int:
    """Of writing these items once: each again for every index that has its key."""
    total = 0
    for item in made:
        copies = 1 + sum(key in item for key, _ in items.INDEXES.values())
        total += copies * math.ceil(items.size(item) / WRITE_UNIT_BYTES)
    return total


class Sqs:
    """Takes what the function says of its messages."""

    def change_message_visibility(self, **_: Any) -> None:
        """Nothing comes again here by itself."""


def _fill(client: Any, nodes: int, template: dict[str, Any], bad: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Write the answers; returns the instances that answer in time and those that answer late."""
    rng = random.Random(1)
    names = [f"i-{number:017x}" for number in range(nodes)]
    silent = set(rng.sample(names, int(nodes * SILENT)))
    late = set(rng.sample(sorted(set(names) - silent), int(nodes * LATE)))
    in_time = [name for name in names if name not in silent and name not in late]
    for number, name in enumerate(names):
        if name not in silent and name not in late:
            record = _variant(bad if number % 100 == 0 else template, number, rng)
            client.put_object(Bucket=BUCKET, Key=_key(name), Body=_output(record))
    return in_time, sorted(late)


def _order(nodes: int, template: Mapping[str, Any]) -> orders.Order:
    hosts = tuple(ExpectedHost(f"gpu-{n:05d}", TYPE, f"i-{n:017x}") for n in range(nodes))
    asked = {**defaults(), "instance_type": TYPE, "call_id": template["call_id"], "timeout_s": 180}
    asked = {name: value for name, value in asked.items() if name not in ("host", "instance_id")}
    run = Run(RUN, now_stamp(), "quick", "bench", hosts)
    return orders.Order(run, 180, "Systems Manager", [asked], {host.instance_id: (0, host.host) for host in hosts})


def measure(nodes: int, pipe: Connection) -> None:
    """Print what one run costs."""
    env, topic, queue = pipe.recv()
    os.environ.update(env)
    made = {name: boto3.client(name, config=config()) for name in ("s3", "dynamodb", "sns")}
    services.client = lambda name: made[name]
    names = services.ServiceNames("bench", "Flightline/bench", TABLE, "training", BUCKET, topic)
    with tempfile.TemporaryDirectory(prefix="flightline-bench-") as place:
        template, bad = (_template(Path(place), faults) for faults in ([], ["remap_pending"]))
    for one in (template, bad):
        one.update(call_id="bench", level="quick")
    order = _order(nodes, template)
    in_time, late = _fill(made["s3"], nodes, template, bad)
    AwsStore(TABLE, BUCKET).start(order.run)
    made["s3"].put_object(Bucket=BUCKET, Key=orders.key_of(RUN), Body=orders.pack(order))
    function = handler.build(services.services("verdict", names), made["s3"], Sqs(), queue)

    def counted() -> Counter[str]:
        pipe.send("count")
        return Counter(pipe.recv())

    before = counted()
    twice = in_time[: int(nodes * TWICE)]
    batches = _events(_key(name) for name in [*in_time, *twice])
    started, cpu = time.perf_counter(), time.process_time()
    for batch in batches:
        assert function.handle(batch) == {"batchItemFailures": []}
    took, used = time.perf_counter() - started, time.process_time() - cpu
    print(f"{len(in_time):,} answers and {len(twice)} twice taken in {len(batches)} batches: {took:.0f} s with the "
          f"emulator, {used:.1f} s of CPU, {1000 * used / len(batches):.0f} ms a batch of {BATCH}")  # fmt: skip
    handler.MARGIN_S = -1e9  # the deadline is over
    _judged(function, _events([orders.key_of(RUN)])[0], "last record to verdict")
    run_requests = counted() - before
    stored = AwsStore(TABLE, BUCKET)
    rows = list(stored.records(RUN))
    assert len(rows) == nodes and stored.run(RUN).verdict == "no-go", f"{nodes - len(rows)} rows lost"
    for name in late:
        record = _variant(template, int(name[2:], 16), random.Random(2))
        made["s3"].put_object(Bucket=BUCKET, Key=_key(name), Body=_output(record))
    _judged(function, _events(_key(name) for name in late)[0], f"judged again with {len(late)} late")
    assert len(stored.late(RUN)) == len(late), "a late answer is lost"
    _price(run_requests, rows, order)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"rows {len(rows):,} of {nodes:,}, late {len(late)}: none lost; peak {peak_mb:.0f} MB")


def _judged(function: handler.VerdictFunction, event: dict[str, Any], what: str) -> None:
    started, cpu = time.perf_counter(), time.process_time()
    assert function.handle(event) == {"batchItemFailures": []}
    took, used = time.perf_counter() - started, time.process_time() - cpu
    print(f"{what}: {took:.1f} s with the emulator, {used:.1f} s of CPU")


def _price(requests: Counter[str], rows: Iterable[Mapping[str, Any]], order: orders.Order) -> None:
    header = {"run_id": RUN, "started_at": order.run.started_at}
    every = list(rows)
    nodes = (item for record in every for item in items.node_items(header, record, items.TTL_DAYS))
    gpus = (item for record in every for item in items.gpu_items(record))
    own, shared = _write_units(nodes), _write_units(gpus)
    kinds: Counter[str] = Counter()
    for action, number in requests.items():
        method = action.split()[0]
        kind = "LIST" if action == f"GET /{BUCKET}" else method if method in ("GET", "PUT") else action
        kinds[kind] += number
    prices = {"write units": own, **{name: kinds[name] for name in ("PUT", "LIST", "GET")}}
    usd = sum(number * USD_A_MILLION[name] / 1e6 for name, number in prices.items())
    first = shared * USD_A_MILLION["write units"] / 1e6
    print(f"requests {dict(kinds.most_common())}")
    print(f"write units {own:,} a run, and {shared:,} for who has which GPU; {usd:.3f} USD a run and {first:.3f} USD")


def main() -> None:
    """Print what the run took."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--nodes", type=int, default=10_000)
    given = arguments.parse_args()
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,))
    process.start()
    try:
        measure(given.nodes, ours)
    finally:
        ours.send("end")
        process.join(30)


if __name__ == "__main__":
    main()
