"""Rows of the control side's own: what is kept for a host that gave no record of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flightline_node.bounds import SAID_CHARS
from flightline_node.model import RECORD_SCHEMA, Reason, Status

from ..record import intake, reasons
from ..record.printable import printable
from .sqlite import ExpectedHost, Record, now_stamp

REACHABLE = "reachable"
NODE = "node"
ABSENT = "absent"
ANSIBLE_PREFIX = "Task failed: "


def unreachable_record(host: ExpectedHost, message: str) -> Record:
    """The row of a host that Ansible could not connect to; message is the connection's own text."""
    return _one_finding(host, REACHABLE, Status.UNREACHABLE, reasons.NO_CONNECTION, f"no connection: {_said(message)}")


def broken_record(host: ExpectedHost, message: str) -> Record:
    """The row of a host where the module did not end well: nothing was measured, so UNKNOWN."""
    return _one_finding(host, NODE, Status.UNKNOWN, reasons.NOT_JUDGED, f"{intake.CANNOT}{_said(message)}")


def absent_record(host: ExpectedHost, message: str) -> Record:
    """The row of a node that its stack has and the inventory lacks."""
    return _one_finding(
        host, ABSENT, Status.FAIL, reasons.NOT_LISTED, _one_line(message), "not listed", "in the inventory"
    )


def lost_record(host: ExpectedHost) -> Record:
    """The row of an expected host that never answered."""
    message = "no result: the run ended before this host answered; judge it again"
    return _one_finding(host, REACHABLE, Status.UNKNOWN, reasons.NO_RESULT, message)


def gave_none(record: Mapping[str, Any]) -> bool:
    """Is it the row of a host that gave no answer before it was judged? A late record may speak in its place."""
    findings = list(record.get("findings") or ())
    return len(findings) == 1 and findings[0].get("check") == REACHABLE


def _one_finding(
    host: ExpectedHost,
    check: str,
    status: Status,
    reason: Reason,
    message: str,
    measured: str | None = None,
    expected: str | None = None,
) -> Record:
    finding: dict[str, Any] = {
        "check": check,
        "status": str(status),
        "device": {},
        "measured": measured,
        "expected": expected,
        "unit": "",
        "message": message,
        "remedy": str(reason.remedy),
        "evidence": [],
        "reason": reason.id,
    }
    made = {
        "schema": RECORD_SCHEMA,
        "host": host.host,
        "instance_id": host.instance_id,
        "instance_type": host.instance_type,
        "started_at": now_stamp(),
        "seconds": 0.0,
        "findings": [finding],
    }
    return intake.stamped(made)


def _said(message: str) -> str:
    said = _one_line(message)
    return said[len(ANSIBLE_PREFIX) :] if said.startswith(ANSIBLE_PREFIX) else said


def _one_line(text: str) -> str:
    return " ".join(printable(str(text)).split())[:SAID_CHARS] or "no reason given"
