"""The training input function: a request in, a run started on nodes that a preflight found good.

It is asked directly (`aws lambda invoke`), so it answers with what it did or why not. The same request_id starts a
run once, also when the first try died anywhere.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from flightline.cloud import batches, items

from ..alert_router.nodes import KnownNode, NodeLookup, result_text
from ..common import stamps, training
from ..common.claims import BUSY, IS_DONE
from ..common.errors import ConfigMissing, InvalidEvent, TryAgain
from ..common.log import say
from ..common.services import ServiceNames, Services, client, services
from .data import Data
from .request import StagingRequest, read

FUNCTION = "training-input"
IDS_PER_COMMAND = 50
"""SendCommand takes at most 50 instance ids. Source: Systems Manager API reference."""
MOST_NAMED = 100
LOOK_BACK = timedelta(hours=24)
Answer = dict[str, Any]


class Refused(RuntimeError):
    """The request is well formed, but must not start now. reasons: why, for people."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = list(reasons)


@dataclass(frozen=True)
class TrainingInput:
    """The function on its services. document: the SSM document that starts a run."""

    on: Services
    fleet: NodeLookup
    ssm: Any
    data: Data
    document: str

    def handle(self, event: object) -> Answer:
        """Start a run. Raises TryAgain when the same request may work later."""
        try:
            request = read(event)
        except InvalidEvent as error:
            place = self.on.invalid.keep(event, str(error))
            self.on.count(FUNCTION, InvalidEvents=1)
            say("bad request kept", reason=str(error), place=place)
            return {"status": "refused", "reasons": [str(error)]}
        return self._once(request)

    def _once(self, request: StagingRequest) -> Answer:
        key = f"training:{request.request_id}"
        state = self.on.claims.take(key)
        if state == IS_DONE:
            return self.on.claims.result(key)
        if state == BUSY:
            raise TryAgain(f"request {request.request_id} is being handled")
        try:
            answer = self._start(request)
        except (Refused, InvalidEvent) as error:
            self.on.claims.release(key)
            self.on.count(FUNCTION, RunsRefused=1)
            return {"status": "refused", "reasons": getattr(error, "reasons", [str(error)])}
        except BaseException:
            self.on.claims.release(key)
            raise
        self.on.claims.done(key, **answer)
        self.on.count(FUNCTION, RunsStarted=1)
        return answer

    def _start(self, request: StagingRequest) -> Answer:
        nodes, left_out = self._good_nodes(request)
        things = self.data.find(request)
        manifest = self.data.prepare(request, things)
        commands = self._send(request, nodes, manifest)
        answer = {
            "status": "started",
            "request_id": request.request_id,
            "commands": commands,
            "manifest": manifest,
            "objects": len(things),
            "bytes": sum(thing.size for thing in things),
            "nodes": len(nodes),
            "spares": len(nodes) - (request.need or len(nodes)),
            "left_out": named(left_out),
        }
        self._remember(request, answer)
        say("started", job=request.job, **answer)
        return answer

    def _good_nodes(self, request: StagingRequest) -> tuple[list[str], list[str]]:
        """Nodes to start on, and why others are left out. Raises Refused where not all, or too few, are good."""
        if request.instance_ids:
            found = self.fleet.find(request.instance_ids)
            wanted = list(request.instance_ids)
        else:
            found = {node.instance_id: node for node in self.fleet.running()}
            wanted = sorted(found)
        oldest = datetime.now(timezone.utc) - timedelta(hours=request.max_result_age_hours)
        why = {instance: self._not_good(instance, found.get(instance), oldest) for instance in wanted}
        good, reasons = [one for one in wanted if not why[one]], [text for text in why.values() if text]
        if not wanted:
            raise Refused([f"cluster {self.fleet.cluster} has no running GPU node"])
        if request.need and len(good) < request.need:
            raise Refused([f"{len(good)} nodes are go, {request.need} needed", *reasons])
        if reasons and not request.need:
            raise Refused(reasons)
        return good, reasons

    def _not_good(self, instance: str, node: KnownNode | None, oldest: datetime) -> str:
        if node is None or node.cluster != self.fleet.cluster:
            return f"{instance}: not a node of cluster {self.fleet.cluster}"
        if node.state != "running":
            return f"{instance}: {node.state}, wanted running"
        return "".join(not_good(instance, self.fleet.last_result(instance), oldest))

    def _send(self, request: StagingRequest, nodes: Sequence[str], manifest: str) -> list[str]:
        """Send the command to all nodes, 50 to a request; one that was sent before is found by its comment."""
        chunks = [list(nodes[start : start + IDS_PER_COMMAND]) for start in range(0, len(nodes), IDS_PER_COMMAND)]
        sent = self._sent_before()
        parameters = {
            "job": [request.job],
            "manifest": [manifest],
            # Base64: no character of a value can mean something to the shell of the document.
            "parameters": [base64.b64encode(json.dumps(dict(request.parameters)).encode()).decode()],
        }
        commands = []
        for number, chunk in enumerate(chunks, 1):
            # With the nodes: at a second try others may be good, and what was sent before was not for these.
            which = zlib.crc32(" ".join(chunk).encode())
            comment = f"flightline {request.request_id} {number}/{len(chunks)} {which:08x}"
            if comment not in sent:
                sent[comment] = self._send_one(chunk, parameters, comment)
            commands.append(sent[comment])
        return commands

    def _send_one(self, chunk: list[str], parameters: Mapping[str, list[str]], comment: str) -> str:
        request = {
            "DocumentName": self.document,
            "InstanceIds": chunk,
            "Parameters": parameters,
            "Comment": comment,
            # A run needs all its nodes at once, and one that cannot start stops the others.
            "MaxConcurrency": "100%",
            "MaxErrors": "0",
        }
        # Sent once (services.ONCE): what got no answer may have been carried out. The next try looks first.
        with _throttled():
            answer = self.ssm.send_command(**request)
        return str(answer["Command"]["CommandId"])

    def _sent_before(self) -> dict[str, str]:
        since = (datetime.now(timezone.utc) - LOOK_BACK).strftime("%Y-%m-%dT%H:%M:%SZ")
        filters = [{"key": "DocumentName", "value": self.document}, {"key": "InvokedAfter", "value": since}]
        pages = self.ssm.get_paginator("list_commands").paginate(Filters=filters)
        with _throttled():
            found = [command for page in pages for command in page.get("Commands", [])]
        return {str(command.get("Comment")): str(command["CommandId"]) for command in found}

    def _remember(self, request: StagingRequest, answer: Answer) -> None:
        meta = {
            "job": request.job,
            "dataset": request.dataset,
            "model": request.model,
            "status": "started",
            "at": stamps.now(),
            "parameters": dict(request.parameters),
            **{key: value for key, value in answer.items() if key != "status"},
        }
        item = items.marshal(training.item(meta, request.request_id))
        batches.put_new(self.on.dynamodb, self.on.names.training_table, item)


def named(reasons: Sequence[str]) -> list[str]:
    """As many as an item of the training table has room for, and how many more there are."""
    more = len(reasons) - MOST_NAMED
    return [*reasons[:MOST_NAMED], *([f"and {more} more"] if more > 0 else [])]


def not_good(instance: str, result: Mapping[str, Any], oldest: datetime) -> list[str]:
    """Why a node must not train: never judged, judged no-go, judged too long ago or at a moment that has not come."""
    if not result or result.get("verdict") != "go":
        return [f"{instance}: {result_text(result)}"]
    if stamps.is_ahead(str(result["started_at"])):
        return [f"{instance}: judged {result['started_at']}, which is later than now"]
    judged = datetime.fromisoformat(str(result["started_at"]))
    return (
        []
        if judged >= oldest
        else [f"{instance}: judged {result['started_at']}, wanted after {oldest:%Y-%m-%d %H:%MZ}"]
    )


@contextmanager
def _throttled() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if batches.throttled(error):
            raise TryAgain(f"SSM: {batches.error_code(error)}") from error
        raise


def build(on: Services, ec2: Any, ssm: Any, data: Data, document: str) -> TrainingInput:
    """The function on given services."""
    fleet = NodeLookup(ec2, on.dynamodb, None, on.names.results_table, on.names.cluster)
    return TrainingInput(on, fleet, ssm, data, document)


@functools.cache
def _on() -> Services:
    return services(FUNCTION, ServiceNames.read(os.environ))


def entry(event: object, context: Any) -> Answer:
    """What Lambda calls."""
    on = _on()
    bucket, document = (os.environ.get(f"FLIGHTLINE_{name}", "") for name in ("DATA_BUCKET", "TRAINING_DOCUMENT"))
    if not bucket or not document:
        raise ConfigMissing("FLIGHTLINE_DATA_BUCKET and FLIGHTLINE_TRAINING_DOCUMENT must be set")
    data = Data(client("s3"), bucket, on.names.results_bucket, context.get_remaining_time_in_millis)
    return build(on, client("ec2"), client("ssm"), data, document).handle(event)
