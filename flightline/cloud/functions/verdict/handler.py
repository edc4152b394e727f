"""The verdict function: S3 says that a run's order or an answer was written; the last one, or the deadline, judges it.

One way in, a queue. An answer's message is done when its record is kept. The order's message stays in the queue, out of
sight until the run's deadline, so that a run whose nodes never answer ends as well.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from flightline.cloud import batches, orders
from flightline.cloud.awsstore import AwsStore
from flightline.cloud.clients import MISSING, Clients
from flightline.store.sqlite import StoreError
from flightline_node.bounds import MAX_DEADLINE_S

from ..common.errors import InvalidEvent, TryAgain
from ..common.log import say
from ..common.queue import bodies, is_batch
from ..common.services import ServiceNames, Services, client, services
from ..storage.store import ResultStore
from . import arrivals
from .answers import Answers, rows
from .arrivals import Arrival
from .judging import Judge

FUNCTION = "verdict"
MARGIN_S = 30.0
"""For the launcher to start everywhere, above the nodes' own deadline; as on a control node."""
AGAIN_S = 30
"""Until a message comes again whose run another invocation is judging."""
SOON_S = 5
"""Until a message comes again whose answer Systems Manager does not know yet: it is told after the bucket."""
MOST_HIDDEN_S = 11 * 3600
"""SQS hides a message for at most 12 hours from when it was received. Source: ChangeMessageVisibility."""


@dataclass(frozen=True)
class VerdictFunction:
    """The function on its services."""

    on: Services
    s3: Any
    sqs: Any
    queue: str
    answers: Answers
    judge: Judge

    def handle(self, event: object) -> dict[str, Any]:
        """A batch of the queue; what is not done comes again. Raises InvalidEvent for anything else."""
        if not (isinstance(event, dict) and is_batch(event)):
            raise InvalidEvent("not a batch of a queue")
        receipts = {record["messageId"]: str(record.get("receiptHandle") or "") for record in event["Records"]}
        waits: dict[str, float] = {}
        counts: Counter[str] = Counter()
        for run_id, arrival in self._sorted(event).items():
            try:
                left_s = self._one(run_id, arrival, counts)
                waits |= dict.fromkeys(arrival.messages, float(SOON_S)) if arrival.early else {}
                waits |= dict.fromkeys(arrival.orders, left_s) if left_s > 0 else {}
            except InvalidEvent as error:
                self.on.keep_invalid({"run": run_id, "answers": arrival.answers}, str(error))
            except Exception as error:  # one run must not cost another
                say("run not done, will come again", run=run_id, error=f"{type(error).__name__}: {error}")
                waits |= dict.fromkeys(arrival.messages, float(AGAIN_S))
        for message_id, left_s in waits.items():
            self._hide(receipts[message_id], left_s)
        self.on.count(FUNCTION, **{f"Answers{name.title()}": number for name, number in counts.items()})
        return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in waits]}

    def _sorted(self, event: dict[str, Any]) -> dict[str, Arrival]:
        found: dict[str, Arrival] = {}
        for message_id, body, raw in bodies(event):
            try:
                if isinstance(body, InvalidEvent):
                    raise body
                told = arrivals.read(body, self.on.names.results_bucket)
            except InvalidEvent as error:
                self.on.keep_invalid(raw, str(error))
                continue
            for run_id, name, key in told:
                arrival = found.setdefault(run_id, Arrival())
                arrival.messages.append(message_id)
                if name:
                    arrival.answers.setdefault(name, []).append(key)
                else:
                    arrival.orders.append(message_id)
        return found

    def _one(self, run_id: str, arrival: Arrival, counts: Counter[str]) -> float:
        """Keep what came of a run, and judge it if it is ready; returns the seconds until it is due, 0 when it is done.

        Raises InvalidEvent for a run that nobody asked for, TryAgain for what may work later.
        """
        order, due_s = self._order(run_id)
        try:
            taken = self.answers.take(order, arrival.answers)
            counts.update(taken)
            if arrival.orders and order.rows:
                self.answers.keep(rows(order, order.rows))
            left_s = due_s - datetime.now(timezone.utc).timestamp()
            arrival.early = taken["early"] > 0 and left_s > 0
            if left_s > 0 and order.nodes.keys() - self.answers.named(run_id):
                return left_s
            if not self.judge.first(order, left_s <= 0):
                return left_s
            self.judge.again(order)
        except StoreError as error:
            raise TryAgain(str(error)) from error
        return 0.0

    def _order(self, run_id: str) -> tuple[orders.Order, float]:
        """A run's order, and when it is due in seconds since 1970: by the bucket's clock, not by the orderer's."""
        try:
            found = self.s3.get_object(Bucket=self.on.names.results_bucket, Key=orders.key_of(run_id))
        except Exception as error:
            if batches.error_code(error) in {*MISSING, "NoSuchKey"}:
                raise InvalidEvent(f"run {run_id[:80]!r}: nobody asked for it here") from error
            raise
        try:
            order = orders.unpack(found["Body"].read())
        except ValueError as error:
            raise InvalidEvent(str(error)) from error
        if order.run.run_id != run_id:
            raise InvalidEvent(f"the order of {order.run.run_id[:80]!r} lies under {run_id[:80]!r}")
        limit_s = min(max(order.deadline_s, 0), MAX_DEADLINE_S) + MARGIN_S
        return order, found["LastModified"].timestamp() + limit_s

    def _hide(self, receipt: str, seconds: float) -> None:
        """Until when a message is out of sight; where that is refused it comes when the queue says."""
        wait_s = int(min(max(seconds, 1), MOST_HIDDEN_S)) + 1
        try:
            self.sqs.change_message_visibility(QueueUrl=self.queue, ReceiptHandle=receipt, VisibilityTimeout=wait_s)
        except Exception as error:
            say("a message comes when its queue says", error=f"{type(error).__name__}: {error}")


def build(on: Services, s3: Any, sqs: Any, ssm: Any, queue: str) -> VerdictFunction:
    """The function on given services. queue: the URL of its own."""
    names = on.names
    made = Clients()
    made.use("dynamodb", on.dynamodb)
    made.use("s3", s3)
    store = AwsStore(names.results_table, names.results_bucket, made)
    results = ResultStore(on.dynamodb, names.results_table, s3, names.results_bucket, looks_first=True)
    taken = Answers(s3, names.results_bucket, ssm, results, store, on.invalid.keep)
    judge = Judge(store, s3, names.results_bucket, on.claims, on.notifier, taken, names.cluster)
    return VerdictFunction(on, s3, sqs, queue, taken, judge)


@functools.cache
def _verdict() -> VerdictFunction:
    names = ServiceNames.read(os.environ)
    return build(services(FUNCTION, names), client("s3"), client("sqs"), client("ssm"), os.environ["FLIGHTLINE_QUEUE"])


def entry(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """What Lambda calls."""
    return _verdict().handle(event)
