"""The storage function: log lines of nodes in, DynamoDB items and messages to people out.

Two ways in: a CloudWatch Logs subscription (asynchronous, so a failure is raised and the whole batch comes again),
and an SQS queue with the same events, for dead letters that are sent again. Whatever comes again changes nothing.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flightline.cloud import batches, items
from flightline_node.tell.logline import TRAINING_STREAM, LineError, Piece, parse

from ..common import training
from ..common.errors import InvalidEvent, TryAgain
from ..common.log import say
from ..common.notify import NoticeContext
from ..common.queue import handle_batch, is_batch
from ..common.services import ServiceNames, Services, client, services
from . import envelope, records
from .envelope import Envelope, LogEvent
from .parts import Parts
from .records import NodeResult
from .store import ResultStore
from .writers import Writers

FUNCTION = "storage"
Answer = dict[str, Any]
Grouped = dict[str, list[tuple[Piece, LogEvent]]]


@dataclass(frozen=True)
class StorageFunction:
    """The function on its services."""

    on: Services
    store: ResultStore
    parts: Parts
    writers: Writers

    def handle(self, event: object) -> Answer:
        """Any event that Lambda may hand over."""
        if is_batch(event):
            assert isinstance(event, dict)
            return handle_batch(event, self.one, self.on.keep_invalid)
        try:
            return self.one(event)
        except InvalidEvent as error:
            self.on.keep_invalid(event, str(error))
            return {"bad": 1}

    def one(self, event: object) -> Answer:
        """One envelope. Raises InvalidEvent for what is none, TryAgain for what may work later."""
        if not (isinstance(event, Mapping) and envelope.is_envelope(event)):
            raise InvalidEvent("not a CloudWatch Logs envelope: wanted awslogs.data")
        opened = envelope.decode(event)
        counts: Counter[str] = Counter()
        grouped = self._pieces(opened, counts)
        results, metas = self._records(grouped, opened, counts)
        self._save_training(metas)
        counts["training"] += len(metas)
        self._save_results(results, counts)
        self.on.count(FUNCTION, **{f"Records{name.title()}": number for name, number in counts.items()})
        say("stored", group=opened.group, stream=opened.stream, **counts)
        return dict(counts)

    def _pieces(self, opened: Envelope, counts: Counter[str]) -> Grouped:
        grouped: Grouped = {}
        for line in opened.events:
            try:
                piece = parse(line.message)
            except LineError as error:
                self._reject_line(opened, line, error, counts)
                continue
            if piece is None:
                counts["foreign"] += 1
            else:
                grouped.setdefault(piece.id, []).append((piece, line))
        return grouped

    def _records(
        self, grouped: Grouped, opened: Envelope, counts: Counter[str]
    ) -> tuple[list[NodeResult], list[items.Item]]:
        results: list[NodeResult] = []
        metas: list[items.Item] = []
        for key, found in grouped.items():
            pieces, line = [piece for piece, _ in found], found[0][1]
            try:
                record = self.parts.add(pieces)
                if record is None:
                    counts["incomplete"] += 1
                    continue
                writer = self.writers.of(opened.stream)
                if pieces[0].kind == "training":
                    metas.append(training.item(record, pieces[0].run))
                elif TRAINING_STREAM in opened.stream:
                    raise InvalidEvent(f"the log stream {opened.stream} is a training job's and holds a node's record")
                else:
                    results.append(NodeResult(key, _run_of(pieces[0].run, writer), records.admitted(record, writer)))
            except (LineError, InvalidEvent) as error:
                self._reject_line(opened, line, error, counts)
        return results, metas

    def _reject_line(self, opened: Envelope, line: LogEvent, error: Exception, counts: Counter[str]) -> None:
        counts["bad"] += 1
        where = {"logGroup": opened.group, "logStream": opened.stream, "id": line.id, "timestamp": line.stamp_ms}
        self.on.keep_invalid({**where, "message": line.message}, str(error))

    def _save_training(self, metas: list[items.Item]) -> None:
        try:
            batches.write_all(self.on.dynamodb, self.on.names.training_table, map(items.marshal, metas))
        except batches.NotWrittenError as error:
            raise TryAgain(str(error)) from error

    def _save_results(self, results: list[NodeResult], counts: Counter[str]) -> None:
        outcome = self.store.save(results)
        for result, reason in outcome.refused:
            self.on.keep_invalid({"run": result.run_id, "record": result.record}, f"DynamoDB refuses it: {reason}")
        for result in outcome.conflicting:
            say("another record of this node is in this run; it stays", run=result.run_id, host=result.host)
        counts["stored"] += len(outcome.stored)
        counts["duplicate"] += len(outcome.duplicate)
        counts["conflicting"] += len(outcome.conflicting)
        counts["bad"] += len(outcome.refused)
        # Duplicates as well: the invocation that stored them may have died before it told anybody.
        counts["told"] += self._tell([*outcome.stored, *outcome.duplicate])

    def _tell(self, results: list[NodeResult]) -> int:
        """One message for the whole batch, from each node's latest record only."""
        latest: dict[str, NodeResult] = {}
        for result in sorted(results, key=lambda result: result.at):
            latest[items.node_name(result.record)] = result
        alerts = [alert for result in latest.values() for alert in records.alerts(result)]
        healthy = {pair for result in latest.values() for pair in records.healthy(result)}
        if not latest:
            return 0
        bad_nodes = len({alert.node for alert in alerts})
        title = f"Flightline {self.on.names.cluster}: {bad_nodes} of {len(latest)} nodes no-go"
        newest = max(latest.values(), key=lambda result: result.at)
        runs = {result.run_id for result in latest.values()}
        return self.on.notifier.tell(
            alerts, healthy, NoticeContext(title, newest.at, newest.run_id if len(runs) == 1 else "")
        )


def _run_of(said: str, writer: str) -> str:
    """A run that a node is alone in: with its instance id in the name none can write into another's, or a fleet's."""
    return said if writer in said else f"{said}-{writer}"


def build(on: Services, s3: Any, ec2: Any) -> StorageFunction:
    """The function on given services."""
    names = on.names
    store = ResultStore(on.dynamodb, names.results_table, s3, names.results_bucket)
    return StorageFunction(on, store, Parts(on.dynamodb, names.results_table), Writers(ec2, names.cluster))


@functools.cache
def _storage() -> StorageFunction:
    return build(services(FUNCTION, ServiceNames.read(os.environ)), client("s3"), client("ec2"))


def entry(event: object, _context: object) -> Answer:
    """What Lambda calls."""
    return _storage().handle(event)
