"""Is this node's health proven by this answer? The operator's view, by other means than the gate's own.

It knows what was asked, when, and the table of what must be judged as plain data: check -> (reasons for which it may be
skipped -> (checks of which one has found something, checks of which one was measured), does an INFO measure it?). What a
type must have measured at all stands in operator_view.py, written by hand.
"""

import json
import math
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

import jsonschema

from flightline.record.schema import published

from .generator import START

_SCHEMA = jsonschema.Draft202012Validator(published())
GOOD, BAD = ("PASS", "WARN"), ("FAIL", "UNKNOWN", "UNREACHABLE")
WITHIN = timedelta(minutes=5)
COUNTERS = ("gpu_count", "neuron_devices")

Table = Mapping[str, Any]


def should_be_go(answer: Any, table: Table, **identity: str) -> bool:
    """Is this a complete valid record of just this call, and does it prove the node's health?"""
    if not isinstance(answer, dict) or any(answer.get(name) != value for name, value in identity.items()):
        return False
    findings = answer.get("findings")
    if not isinstance(findings, list) or not all(isinstance(one, dict) for one in findings):
        return False
    said = [json.dumps([one.get(key) for key in ("check", "device", "message")], default=str) for one in findings]
    whole = len(said) == len(set(said)) and _finite(answer, 0) and _SCHEMA.is_valid(answer)
    return whole and proves_health(answer, table)


def proves_health(answer: Mapping[str, Any], table: Table) -> bool:
    """Of a well-formed record: would an operator start a job on this node for it?"""
    findings = answer["findings"]
    if any(one.get("unit") and isinstance(one.get("measured"), bool) for one in findings):
        return False  # a yes or no is no number of anything
    statuses: dict[str, set[str]] = {}
    for one in findings:
        statuses.setdefault(one["check"], set()).add(one["status"])
    if set(statuses) != set(table) or any(statuses[check] & set(BAD) for check in table):
        return False
    measured = {check for check in table if _measured(statuses[check], table[check].informs)}
    skipped = [one for one in findings if one["status"] == "SKIP"]
    rightly = all(_rightly(one, statuses, measured, table) for one in skipped)
    left = set(table) - measured - {one["check"] for one in skipped}
    return bool(measured) and rightly and not left and _of_this_call(answer) and _names_what_it_counts(answer)


def _measured(statuses: set[str], informs: bool) -> bool:
    return bool(statuses & set(GOOD)) or (informs and "INFO" in statuses)


def _rightly(skip: Mapping[str, Any], statuses: Mapping[str, set[str]], measured: set[str], table: Table) -> bool:
    reasons = table[skip["check"]].reasons
    if skip.get("reason") not in reasons:
        return False
    worse, witnesses = reasons[skip["reason"]]
    asked = [check for check in witnesses if check in table]
    found = not worse or any(statuses.get(check, set()) & {"WARN"} for check in worse)
    return found and (not asked or bool(measured & set(asked)))


def _of_this_call(answer: Mapping[str, Any]) -> bool:
    try:
        began = datetime.fromisoformat(answer["started_at"].replace("Z", "+00:00"))
        ended = began + timedelta(seconds=answer["seconds"])
    except (ValueError, OverflowError):
        return False
    return began >= datetime.fromisoformat(START) - WITHIN and ended <= datetime.now(timezone.utc) + WITHIN


def _names_what_it_counts(answer: Mapping[str, Any]) -> bool:
    counts = [
        one["measured"]
        for one in answer["findings"]
        if one["check"] in COUNTERS and one["status"] == "PASS" and isinstance(one.get("measured"), int)
    ]
    names = [one.get("uuid") or one.get("serial") or one.get("pci_bus_id") for one in answer["gpus"]]
    return not counts or (len(set(names) - {None, ""}) == len(names) == max(counts))


def of_text(text: str, table: Table, **identity: str) -> bool:
    """The same of JSON text, in which no key may be given twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    try:
        answer = json.loads(text, object_pairs_hook=once)
    except (ValueError, AssertionError, RecursionError):
        return False
    return should_be_go(answer, table, **identity)


def _finite(value: Any, depth: int) -> bool:
    if isinstance(value, dict):
        return all(_finite(item, depth + 1) for item in value.values())
    if isinstance(value, list):
        return all(_finite(item, depth + 1) for item in value)
    # Measured values may nest four deep within finding, list and record; numbers stay below 1e30.
    return depth <= 8 and (not isinstance(value, float) or math.isfinite(value))
