"""The same trouble of many hosts, once."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from sys import intern
from typing import Any

from flightline_node.model import RANK, Remedy, Status, device_label

from .fleet_checks import remedy_of, title_of
from .recorder import NODE, REACHABLE
from .result import FindingDict, Group, NodeRow

_NUMBERED = re.compile(r"[\w.:/-]*\d[\w.:/-]*")


def group(rows: Iterable[NodeRow]) -> list[Group]:
    """The same trouble of several hosts as one: same check, status, remedy and expectation; worst first."""
    found: dict[tuple[str, str, str, str, str, str], Group] = {}
    for row in rows:
        for finding in row.findings:
            if finding["status"] == "SKIP":
                continue
            unit, expected = finding.get("unit") or "", finding.get("expected")
            # Of a node that was not judged the message is all there is to go by.
            cause = _cause(finding["message"], row.host) if finding["check"] in (REACHABLE, NODE) else ""
            key = (finding["check"], finding["status"], finding["remedy"], repr(expected), unit, cause)
            if key not in found:
                found[key] = _group(finding, expected, unit)
            label = intern(device_label(finding.get("device") or {}))
            found[key].where.append((row.host, label, finding.get("measured")))
    groups = _same_cause(found.values())
    return sorted(groups, key=lambda item: (-RANK[item.status], -len(item.hosts), item.check))


def _cause(message: str, host: str) -> str:
    """A message without what differs from host to host: its name, addresses, ids and numbers."""
    return _NUMBERED.sub("", re.sub(rf"(?<![\w.-]){re.escape(host)}(?![\w-])", "", message))


def _same_cause(groups: Iterable[Group]) -> list[Group]:
    """Checks that one broken probe left UNKNOWN on the same hosts, as one group: the cause is shown once."""
    merged: dict[object, list[Group]] = defaultdict(list)
    for number, item in enumerate(groups):
        alone = item.status is not Status.UNKNOWN
        merged[number if alone else (item.message, item.remedy, tuple(item.hosts))].append(item)
    return [_merge(items) for items in merged.values()]


def _merge(items: list[Group]) -> Group:
    first, more = items[0], len(items) - 1
    if not more:
        return first
    names = ", ".join(item.check for item in items)
    title = f"{first.title} and {more} more check{'s' if more > 1 else ''}"
    where = [(host, "", None) for host in first.hosts]
    return replace(first, title=title, remedy_text=f"Find out why nothing was measured. Checks: {names}", where=where)


def _group(finding: FindingDict, expected: Any, unit: str) -> Group:
    title, text = title_of(finding["check"]), remedy_of(finding["check"])
    status, remedy = Status(finding["status"]), Remedy(finding["remedy"])
    return Group(finding["check"], title, status, remedy, text, finding["message"], expected, unit, [])
