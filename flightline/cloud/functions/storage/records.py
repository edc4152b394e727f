"""What a node's log line may say: checks of records, and what people are told about them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flightline.cloud import items
from flightline.record import intake
from flightline.tell.digest import Alert, device_text, shown
from flightline_node.model import BLOCKING, EVIDENCE, as_status, device_label

from ..common.errors import InvalidEvent
from ..common.stamps import is_ahead, utc

INSTANCE = re.compile(r"i-[0-9a-f]{8,17}")


@dataclass(frozen=True)
class NodeResult:
    """One node's record as it came. id: the log line's, the same for the same record.

    header: of its run, where one is known that has more nodes.
    """

    id: str
    run_id: str
    record: Mapping[str, Any]
    header: Mapping[str, Any] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """The node's name."""
        return str(self.record["host"])

    @property
    def at(self) -> str:
        """When the node was measured."""
        return utc(self.record["started_at"])

    @property
    def run(self) -> dict[str, Any]:
        """The run's header; without one, as far as one node knows it."""
        if self.header:
            return dict(self.header)
        names = ("host", "instance_type", "instance_id")
        return {
            "run_id": self.run_id,
            "started_at": self.at,
            "level": str(self.record.get("level") or ""),
            "inventory": "log",
            "hosts": [{name: str(self.record.get(name) or "") for name in names}],
        }


def admitted(record: Mapping[str, Any], writer: str) -> Mapping[str, Any]:
    """The record through the gate. Raises InvalidEvent when it is none, or speaks for another node.

    Its list of checks is its own version's: the line's digest says that it is whole as the node's library made it.
    writer: the instance that wrote it, as its place proves (writers.py, a boot's key); it answers for itself only.
    """
    try:
        found = intake.shaped(record)
    except intake.AnswerRefusedError as error:
        raise InvalidEvent(str(error)) from None
    instance = found["instance_id"]
    if instance and not INSTANCE.fullmatch(instance):
        raise InvalidEvent(f"instance_id {instance!r}: wanted i- and 8 to 17 hexadecimal digits")
    if instance != writer:
        raise InvalidEvent(f"{writer} wrote a record of {instance or 'no instance'}")
    if is_ahead(utc(found["started_at"])):
        # As the newest of its node it would hide every later one, for years.
        raise InvalidEvent(f"started_at {found['started_at']} is later than now: the node's clock is wrong")
    return found


def alerts(result: NodeResult) -> list[Alert]:
    """What blocks a node, for people."""
    record = result.record
    node = items.node_name(record)
    blocking = [finding for finding in record["findings"] if as_status(finding.get("status")) in BLOCKING]
    return [
        Alert(
            node=node,
            host=result.host,
            instance_id=str(record.get("instance_id") or ""),
            check=str(finding["check"]),
            status=items.worst([finding]),
            message=str(finding.get("message") or ""),
            device=_device(finding),
            measured=shown(finding.get("measured"), str(finding.get("unit") or "")),
            expected=shown(finding.get("expected"), str(finding.get("unit") or "")),
            remedy=str(finding.get("remedy") or "INVESTIGATE"),
            at=result.at,
        )
        for finding in blocking
    ]


def _device(finding: Mapping[str, Any]) -> str:
    device = finding.get("device") or {}
    return device_text(device_label(device), device)


def healthy(result: NodeResult) -> set[tuple[str, str]]:
    """(node, check) pairs that this record measured and found good: these troubles are over."""
    node = items.node_name(result.record)
    by_check: dict[str, list[Mapping[str, Any]]] = {}
    for finding in result.record["findings"]:
        by_check.setdefault(finding["check"], []).append(finding)
    return {(node, check) for check, found in by_check.items() if as_status(items.worst(found)) in EVIDENCE - BLOCKING}
