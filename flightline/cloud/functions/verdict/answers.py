"""Take the answers of a run's nodes: read, let through the gate, kept once; what is refused stays in the bucket.

Every node may write where answers are, so one is taken when Systems Manager knows it as that instance's own
(cloud/vouched.py); what it does not know says nothing of a node, and what it does not know yet is waited for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from flightline.cloud import vouched
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
from .arrivals import STDOUT, command_of

READERS = 16
OWN = "control"
"""What is kept as the digest of a row that no node gave."""


@dataclass(frozen=True)
class Answers:
    """s3, bucket: where answers are. ssm: a client. results: where records go. store: the same table, to be judged.

    bad: keeps what is no answer, with the reason.
    """

    s3: Any
    bucket: str
    ssm: Any
    results: ResultStore
    store: AwsStore
    invalid: Callable[[object, str], object]

    def take(self, order: Order, found: Mapping[str, list[str]]) -> dict[str, int]:
        """Keep the answers of nodes (instance id -> keys); returns how many were stored, late, duplicate or bad.

        "early" are those of nodes with which Systems Manager is not done.
        """
        known = {name: keys for name, keys in found.items() if name in order.nodes}
        for name in found.keys() - known.keys():
            self.invalid({"run": order.run.run_id, "keys": found[name]}, f"{name[:80]!r} was not asked in this run")
        pairs = [(name, key) for name, keys in sorted(known.items()) for key in sorted(keys)]
        with ThreadPoolExecutor(READERS, "answers") as pool:
            replies = list(pool.map(lambda pair: self._read(order, *pair), pairs))
        hosts = order.expected()
        own = [(name, *reply) for (name, _), reply in zip(pairs, replies) if reply]
        counts = self.keep(
            _result(order, digest, record_of(hosts[reply.host], order.params(name), reply, order.run.started_at))
            for name, digest, reply in own
            if not _forged(reply)
        )
        for name, key, reply in own:
            if _forged(reply):
                self.invalid({"run": order.run.run_id, "keys": [key]}, f"{name}: {reply.trouble}")
        counts["bad"] = len(found) - len(known) + sum(_forged(reply) for _, _, reply in own)
        counts["early"] = len(replies) - len(own)
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

    def _read(self, order: Order, name: str, key: str) -> tuple[str, HostReply] | None:
        """The digest of an answer, by which it is known when it comes again, and what it says; None: not yet."""
        host, params = order.nodes[name][1], order.params(name)
        said = vouched.invocation(self.ssm, command_of(key), name)
        if said.status and said.status not in vouched.FINAL:
            return None
        most = most_bytes(bool(params.get("return_bundle")))
        taken: list[str] = []

        def read(text: str) -> HostReply:
            taken[:] = [hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()]
            return outputs.read(host, name, text, most)

        reply = vouched.vouched(host, read, vouched.texts(self.s3, self.bucket, key, 2 * most), said.output)
        if not said.status and reply.answer is None:
            reply = HostReply(host, trouble=f"{vouched.FORGED}: it knows no such command")
        return (taken[0] if taken else key), reply


def _forged(reply: HostReply) -> bool:
    return reply.trouble.startswith(vouched.FORGED)


def rows(order: Order, records: Iterable[Mapping[str, Any]]) -> Iterator[NodeResult]:
    """The control side's own rows of a run, as results: the first of a host stays."""
    return (_result(order, OWN, record) for record in records)


def _result(order: Order, digest: str, record: Mapping[str, Any]) -> NodeResult:
    return NodeResult(digest, order.run.run_id, record, run_dict_light(order.run))
