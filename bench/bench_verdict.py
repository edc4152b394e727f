"""10,000 nodes judged by the verdict function: 5 % silent, 1 % late, 1 % duplicate (wanted: 10 s, 500 MB, no row lost).

Real records of simulated nodes under their own names, as the outputs that Run Command leaves in the bucket, through the
function's own code into its store and its report. DynamoDB, S3 and SNS are tables in this process, because an emulator
of 10,000 nodes takes longer than what is measured: requests and write units are counted, their latency is not in it.
"""

from __future__ import annotations

import functools
import io
import json
import math
import random
import resource
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench.bench_fleet import TYPE, _template, _variant
from bench.common import asked, workplace
from flightline.cloud import items, orders
from flightline.cloud.functions.common import services
from flightline.cloud.functions.verdict import handler
from flightline.contract import CALLS_PREFIX
from flightline.record.outputs import BEGUN, ENDED
from flightline.run.calls import OF_A_HOST
from flightline.store.sqlite import ExpectedHost, Run, now_stamp
from flightline_node.inputs import defaults
from flightline_node.tell.frames import frames

COMMAND = "00000000-0000-0000-0000-000000000001"
RUN, BUCKET, TABLE = "20261121T100000Z-bench0", "bench-results", "results"
SILENT, LATE, TWICE = 0.05, 0.01, 0.01
BATCH = 200
WRITE_UNIT_BYTES, PAGE_BYTES = 1024, 1 << 20
USD_A_MILLION = {"write units": 0.625, "PUT": 5.0, "LIST": 5.0, "GET": 0.4}
"""us-east-1, on demand. Source: AWS price lists of DynamoDB and S3, 2025."""


class _Refused(Exception):
    """As botocore says that a condition does not hold."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": 400}}


@dataclass
class _Table:
    """What the function asks of DynamoDB: conditions, pages of 1 MB, write units with the indexes' copies."""

    requests: Counter[str]
    units: Counter[str] = field(default_factory=Counter)
    held: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    closed: tuple[float, float] = (0.0, 0.0)

    def _there(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        return self.held.get(key["pk"]["S"], {}).get(key["sk"]["S"])

    def _put(self, item: dict[str, Any]) -> None:
        copies = 1 + sum(key in item for key, _ in items.INDEXES.values())
        units = copies * math.ceil(items.size(items.unmarshal(item)) / WRITE_UNIT_BYTES)
        self.units[item["pk"]["S"].partition("#")[0]] += units
        self.held.setdefault(item["pk"]["S"], {})[item["sk"]["S"]] = item

    def put_item(self, *, Item: dict[str, Any], ConditionExpression: str = "", **_: Any) -> None:
        self.requests["PutItem"] += 1
        with self.lock:
            if ConditionExpression and self._there(Item):
                self.units["refused"] += 1
                raise _Refused("ConditionalCheckFailedException")
            self._put(Item)

    def update_item(self, *, Key: dict[str, Any], ExpressionAttributeValues: Mapping[str, Any], **_: Any) -> None:
        self.requests["UpdateItem"] += 1
        self.closed = time.perf_counter(), time.process_time()
        there = self._there(Key)
        assert there
        if there["finished_at"]["S"]:
            raise _Refused("ConditionalCheckFailedException")
        changed = {"finished_at": ExpressionAttributeValues[":at"], "verdict": ExpressionAttributeValues[":verdict"]}
        self._put({**there, **changed})

    def delete_item(self, *, Key: dict[str, Any], **_: Any) -> None:
        self.requests["DeleteItem"] += 1
        self.held.get(Key["pk"]["S"], {}).pop(Key["sk"]["S"], None)

    def get_item(self, *, Key: dict[str, Any], **_: Any) -> dict[str, Any]:
        self.requests["GetItem"] += 1
        there = self._there(Key)
        return {"Item": there} if there else {}

    def batch_get_item(self, *, RequestItems: Mapping[str, Any]) -> dict[str, Any]:
        self.requests["BatchGetItem"] += 1
        wanted = (self._there(key) for key in RequestItems[TABLE]["Keys"])
        return {"Responses": {TABLE: [item for item in wanted if item]}}

    def batch_write_item(self, *, RequestItems: Mapping[str, Any]) -> dict[str, Any]:
        self.requests["BatchWriteItem"] += 1
        with self.lock:
            for request in RequestItems[TABLE]:
                self._put(request["PutRequest"]["Item"])
        return {}

    def query(self, *, ExclusiveStartKey: str = "", IndexName: str = "", **asked: Any) -> dict[str, Any]:
        """A partition's items from a sort key on; no index has an earlier run here."""
        self.requests["Query"] += 1
        values = asked["ExpressionAttributeValues"]
        partition = {} if IndexName else self.held.get((values.get(":h") or values[":pk"])["S"], {})
        start = (values.get(":r") or values.get(":sk") or {"S": ""})["S"]
        page: list[dict[str, Any]] = []
        room = PAGE_BYTES
        for key in sorted(key for key in partition if key.startswith(start) and key > ExclusiveStartKey):
            page.append(partition[key])
            room -= len((partition[key].get("body") or {"B": b""})["B"]) + 500
            if room < 0:
                return {"Items": page, "LastEvaluatedKey": key}
        return {"Items": page}


@dataclass
class _Bucket:
    """What the function asks of S3."""

    requests: Counter[str]
    held: dict[str, bytes] = field(default_factory=dict)

    def get_object(self, *, Key: str, **_: Any) -> dict[str, Any]:
        self.requests["GET"] += 1
        body = self.held[Key]
        return {"Body": io.BytesIO(body), "ContentLength": len(body), "LastModified": datetime.now(timezone.utc)}

    def put_object(self, *, Key: str, Body: bytes, IfNoneMatch: str = "", **_: Any) -> None:
        self.requests["PUT"] += 1
        if IfNoneMatch and Key in self.held:
            raise _Refused("PreconditionFailed")
        self.held[Key] = Body

    def get_paginator(self, _: str) -> _Bucket:
        return self

    def paginate(self, *, Prefix: str, **_: Any) -> Iterator[dict[str, Any]]:
        """Pages of 1,000 keys."""
        keys = sorted(key for key in self.held if key.startswith(Prefix))
        for start in range(0, len(keys), 1000):
            self.requests["LIST"] += 1
            yield {"Contents": [{"Key": key} for key in keys[start : start + 1000]]}


@dataclass
class _Others:
    """SNS and SQS, and what nothing else answers."""

    requests: Counter[str]

    def publish(self, **_: Any) -> None:
        self.requests["Publish"] += 1

    def change_message_visibility(self, **_: Any) -> None:
        """Nothing comes again here by itself."""


@dataclass
class _Manager:
    """Systems Manager: what each node's own agent has sent it of what lies in the bucket."""

    bucket: _Bucket

    def get_paginator(self, _: str) -> _Manager:
        return self

    def paginate(self, **asked: Any) -> list[dict[str, Any]]:
        key = _key(asked["InstanceId"], asked["CommandId"])
        text = self.bucket.get_object(Key=key)["Body"].read()[:2500].decode()
        row = {"InstanceId": asked["InstanceId"], "Status": "Success", "CommandPlugins": [{"Output": text}]}
        return [{"CommandInvocations": [row]}]


def _output(record: Mapping[str, Any]) -> bytes:
    sent = {name: value for name, value in record.items() if name != "admitted"}
    name = record["instance_id"]
    return "\n".join([f"{BEGUN} {name}", *frames(json.dumps({"record": sent})), f"{ENDED} 0", ""]).encode()


def _key(name: str, command: str = COMMAND) -> str:
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
            client.put_object(Key=_key(name), Body=_output(record))
    return in_time, sorted(late)


def _order(nodes: int, template: Mapping[str, Any]) -> orders.Order:
    hosts = tuple(ExpectedHost(f"gpu-{n:05d}", TYPE, f"i-{n:017x}") for n in range(nodes))
    asked = {name: value for name, value in defaults().items() if name not in OF_A_HOST}
    asked |= {"instance_type": TYPE, "timeout_s": 180}
    nodes_of = {host.instance_id: (0, host.host, str(template["call_id"])) for host in hosts}
    run = Run(RUN, now_stamp(), "quick", "bench", hosts)
    return orders.Order(run, 180, "Systems Manager", [asked], nodes_of)


def measure(nodes: int) -> None:
    """Print what one run costs."""
    requests: Counter[str] = Counter()
    table, bucket, others = _Table(requests), _Bucket(requests), _Others(requests)
    made = {"dynamodb": table, "s3": bucket, "sns": others}
    services.client = functools.cache(made.__getitem__)
    names = services.ServiceNames(
        "bench", "Flightline/bench", TABLE, "training", BUCKET, {"topic": "arn:aws:sns:r:1:t"}
    )
    function = handler.build(services.services("verdict", names), bucket, others, _Manager(bucket), "q")
    with workplace() as place:
        template, bad = (_template(place, faults) for faults in ([], ["remap_pending"]))
    for one in (template, bad):
        one.update(call_id="bench", level="quick")
    order = _order(nodes, template)
    in_time, late = _fill(bucket, nodes, template, bad)
    store = function.judge.store
    store.start(order.run)
    bucket.put_object(Key=orders.key_of(RUN), Body=orders.pack(order))
    requests.clear()
    twice = in_time[: int(nodes * TWICE)]
    batches = _events(_key(name) for name in [*in_time, *twice])
    started = time.process_time()
    for batch in batches:
        assert function.handle(batch) == {"batchItemFailures": []}
    used = time.process_time() - started
    answers = f"{len(in_time):,} answers and {len(twice)} of them twice"
    print(f"{answers}: {len(batches)} batches of {BATCH}, {used / len(batches):.2f} s of CPU each")
    handler.MARGIN_S = -1e9  # the deadline is over
    began = time.perf_counter(), time.process_time()
    _judged(function, _events([orders.key_of(RUN)])[0], "last record to verdict, report and message")
    wall, cpu = (then - start for start, then in zip(began, table.closed))
    print(f"of it until the run has its verdict: {wall:.1f} s, {cpu:.1f} s of CPU")
    rows = list(store.records(RUN))
    assert len(rows) == nodes and store.run(RUN).verdict == "no-go", f"{nodes - len(rows)} rows lost"
    _price(requests, table.units)
    for name in late:
        record = _variant(template, int(name[2:], 16), random.Random(2))
        bucket.put_object(Key=_key(name), Body=_output(record))
    _judged(function, _events(_key(name) for name in late)[0], f"judged again with {len(late)} late")
    assert len(store.late(RUN)) == len(late), "a late answer is lost"
    report_mb = {
        key.rpartition("/")[2]: len(body) / 1e6 for key, body in bucket.held.items() if key.startswith("runs/")
    }
    print(f"rows {len(rows):,} of {nodes:,}, late {len(late)} of {len(late)}: none lost; "
          f"report.html {report_mb['report.html']:.1f} MB")  # fmt: skip


def _judged(function: handler.VerdictFunction, event: dict[str, Any], what: str) -> None:
    """In a process of its own size: what holds the records here is not the function's memory."""
    before = _resident_mb()
    started, cpu = time.perf_counter(), time.process_time()
    assert function.handle(event) == {"batchItemFailures": []}
    took, used = time.perf_counter() - started, time.process_time() - cpu
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what}: {took:.1f} s, {used:.1f} s of CPU; {peak_mb - before:.0f} MB above what holds the emulated table")


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def _price(requests: Counter[str], units: Counter[str]) -> None:
    shared = units["GPU"]
    own = sum(units.values()) - shared
    priced = {"write units": own, **{name: requests[name] for name in ("PUT", "LIST", "GET")}}
    usd = sum(number * USD_A_MILLION[name] / 1e6 for name, number in priced.items())
    first = shared * USD_A_MILLION["write units"] / 1e6
    print(f"requests {dict(requests.most_common())}")
    print(f"write units {own:,} a run: {usd:.3f} USD with the requests to S3; once {shared:,} for who has which GPU: "
          f"{first:.3f} USD")  # fmt: skip


def main() -> None:
    """Print what the run took."""
    measure(asked(__doc__, nodes=10_000).nodes)


if __name__ == "__main__":
    main()
