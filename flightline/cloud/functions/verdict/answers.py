"""Take the answers of a run's nodes: read, let through the gate, kept once; what is refused stays in the bucket."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from flightline.cloud.awsstore import AwsStore, run_dict_light
from flightline.cloud.orders import Order
from flightline.contract import CALLS_PREFIX
from flightline.record import outputs
from flightline.record.answers import most_bytes
from flightline.record.outputs import HostReply
from flightline.store.replies import record_of
from flightline.store.rows import gave_none

from ..storage.records import NodeResult
from ..storage.store import ResultStore
from .arrivals import STDOUT

READERS = 16
OWN = "control"
"""What is kept as the digest of a row that no node gave."""


@dataclass(frozen=True)
class Answers:
    """s3, bucket: where answers are. results: where records go. store: the same table, as the judgement reads it.

    bad: keeps what is no answer, with the reason.
    """

    s3: Any
    bucket: str
    results: ResultStore
    store: AwsStore
    invalid: Callable[[object, str], object]

    def take(self, order: Order, found: Mapping[str, list[str]]) -> dict[str, int]:
        """Keep the answers of nodes (instance id -> keys); returns how many were stored, late, duplicate or bad."""
        known = {name: keys for name, keys in found.items() if name in order.nodes}
        for name in found.keys() - known.keys():
            self.invalid({"run": order.run.run_id, "keys": found[name]}, f"{name[:80]!r} was not asked in this run")
        pairs = [(name, key) for name, keys in sorted(known.items()) for key in sorted(keys)]
        with ThreadPoolExecutor(READERS, "answers") as pool:
            replies = list(pool.map(lambda pair: self._read(order, *pair), pairs))
        hosts = order.expected()
        counts = self.keep(
            _result(order, digest, record_of(hosts[reply.host], order.params(name), reply, order.run.started_at))
            for (name, _), (digest, reply) in zip(pairs, replies)
        )
        counts["bad"] = len(found) - len(known)
        return counts

    def keep(self, results: Iterable[NodeResult]) -> dict[str, int]:
        """Keep records; one of a node that was given up is kept as late, any other second one is no row."""
        outcome = self.results.save(list(results))
        late = twice = 0
        for result in outcome.conflicting:
            there = self.store.record(result.run_id, result.host)
            if there and gave_none(there) and not gave_none(result.record):
                late += self.store.save_late_record(result.run_id, result.record)
            elif not gave_none(result.record):
                twice += 1
                self.invalid(
                    {"run": result.run_id, "record": result.record}, "another record of this node is in this run"
                )
        for result, reason in outcome.refused:
            self.invalid({"run": result.run_id, "record": result.record}, f"DynamoDB refuses it: {reason}")
        duplicate = len(outcome.duplicate)
        return {"stored": len(outcome.stored), "late": late, "duplicate": duplicate, "conflicting": twice}

    def named(self, run_id: str) -> set[str]:
        """Instance ids of the nodes whose answers are in the bucket."""
        prefix = f"{CALLS_PREFIX}{run_id}/"
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        keys = (one["Key"][len(prefix) :].split("/") for page in pages for one in page.get("Contents", ()))
        return {words[1] for words in keys if len(words) == 5 and words[-1] == STDOUT}

    def _read(self, order: Order, name: str, key: str) -> tuple[str, HostReply]:
        """The digest of an answer, by which it is known when it comes again, and what it says."""
        host, params = order.nodes[name][1], order.params(name)
        most = most_bytes(bool(params.get("return_bundle")))
        body = self.s3.get_object(Bucket=self.bucket, Key=key)
        if int(body["ContentLength"]) > 2 * most:
            return key, HostReply(host, trouble="its answer is endless: more than twice of what is taken")
        raw = body["Body"].read()
        return hashlib.sha256(raw).hexdigest(), outputs.read(host, name, raw.decode("utf-8", "replace"), most)


def rows(order: Order, records: Iterable[Mapping[str, Any]]) -> Iterator[NodeResult]:
    """The control side's own rows of a run, as results: the first of a host stays."""
    return (_result(order, OWN, record) for record in records)


def _result(order: Order, digest: str, record: Mapping[str, Any]) -> NodeResult:
    return NodeResult(digest, order.run.run_id, record, run_dict_light(order.run))
