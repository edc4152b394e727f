"""Words and values as the report shows them: safe, short, the same in every format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from flightline.fleet.result import FindingDict, NodeRow, TroubleGroup
from flightline_node import model
from flightline_node.model import BLOCKING, RANK, Status, Verdict, as_status

from ..record.printable import clip, printable

MAX_TEXT_CHARS = 4000
MAX_VALUE_CHARS = 160
MAX_VALUE_ITEMS = 8

CODES: Mapping[Status, str] = {status: "X" if status is Status.UNREACHABLE else status.value[0] for status in Status}
"""One letter per status, where there is only room for one."""

NOT_RUN = "."


def clean(value: object) -> str:
    """Text of unknown origin on one line: nothing in it can steer a terminal or reorder a page.

    Control characters, terminal escapes, bidirectional overrides and lone surrogates become U+FFFD. What is longer
    than anybody reads is cut first, so that its length costs nothing.
    """
    return printable(clip(str(value), MAX_TEXT_CHARS))


def show_value(value: Any, unit: str = "") -> str:
    """Show a measured or expected value of any JSON type as short text; None is the empty string."""
    if value is None:
        return ""
    text = clip(_value(value), MAX_VALUE_CHARS)
    unit = clean(unit)
    return f"{text} {unit}" if unit and text else text


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return _items([f"{clean(key)}: {_value(item)}" for key, item in list(value.items())[:50]], len(value))
    if isinstance(value, (list, tuple)):
        return _items([_value(item) for item in value[:50]], len(value))
    return clean(value)


def _items(shown: Sequence[str], total: int) -> str:
    if not total:
        return "none"
    rest = total - min(total, MAX_VALUE_ITEMS)
    return ", ".join(shown[:MAX_VALUE_ITEMS]) + (f", +{rest} more" if rest else "")


def device_of(finding: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the finding's device; empty when it has none that can be read."""
    device = finding.get("device")
    return device if isinstance(device, Mapping) else {}


def evidence_of(finding: Mapping[str, Any]) -> list[str]:
    """Return the finding's evidence, a clean line each."""
    lines = finding.get("evidence")
    return [clean(line) for line in lines] if isinstance(lines, (list, tuple)) else []


def hosts_of(finding: Mapping[str, Any]) -> list[str]:
    """Return the hosts of a finding about the fleet."""
    hosts = finding.get("hosts")
    return [str(host) for host in hosts] if isinstance(hosts, (list, tuple)) else []


def device_label(device: Mapping[str, Any]) -> str:
    """The label of a part, safe to show; '' for the whole node."""
    return clean(model.device_label(device))


def duration(started: str, finished: str) -> str:
    """'2 min 13 s' between two ISO 8601 stamps; '' when either is missing or unreadable."""
    try:
        seconds = (datetime.fromisoformat(finished) - datetime.fromisoformat(started)).total_seconds()
    except (ValueError, TypeError):
        return ""
    return "" if seconds < 0 else spell(seconds)


def spell(seconds: float) -> str:
    """'2 min 13 s'."""
    hours, rest = divmod(round(seconds), 3600)
    minutes, secs = divmod(rest, 60)
    parts = [(hours, "h"), (minutes, "min"), (secs, "s")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 s"


def count(number: int, singular: str, plural: str | None = None) -> str:
    """'1 host', '1,200 hosts'."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


_IPV4 = re.compile(r"((?:[0-9]{1,3}\.){3})([0-9]{1,3})()")
NUMBERED = re.compile(r"([^.]*[^.0-9])?([0-9]{1,9})(\..*)?")
_Run = tuple[str, str, list[str]]


def host_ranges(hosts: Iterable[str]) -> list[tuple[str, int]]:
    """Hosts as short entries with the number of hosts in each: ('gpu-[001-003]', 3).

    Runs of consecutive numbers at the end of the (first label of the) name are joined; each host counts once.
    """
    runs: list[_Run] = []
    buckets: dict[tuple[str, str], list[str]] = {}
    singles: list[str] = []
    for host in dict.fromkeys(hosts):
        match = _IPV4.fullmatch(host) or NUMBERED.fullmatch(host)
        if match:
            buckets.setdefault((match.group(1) or "", match.group(3) or ""), []).append(match.group(2))
        else:
            singles.append(host)
    for (prefix, suffix), numbers in buckets.items():
        for number in sorted(numbers, key=lambda digits: (int(digits), len(digits))):
            if runs and runs[-1][:2] == (prefix, suffix) and _follows(runs[-1][2][-1], number):
                runs[-1][2].append(number)
            else:
                runs.append((prefix, suffix, [number]))
    return [_range(run) for run in runs] + [(clean(host), 1) for host in singles]


def _follows(before: str, after: str) -> bool:
    if int(after) != int(before) + 1:
        return False
    return len(after) == len(before) or not (before.startswith("0") or after.startswith("0"))


def _range(run: _Run) -> tuple[str, int]:
    prefix, suffix, numbers = run
    middle = numbers[0] if len(numbers) == 1 else f"[{numbers[0]}-{numbers[-1]}]"
    return clean(prefix + middle + suffix), len(numbers)


def places(where: Iterable[tuple[str, str, Any]], unit: str = "", most: int = 8) -> str:
    """Hosts and devices of a group on one line: 'GPU 2 on gpu-[001-003], gpu-007; GPU 1 on gpu-009; +4 more hosts'.

    The measured value stands beside the device when it differs between occurrences.
    """
    rows = list(where)
    varies = len({show_value(measured) for _, _, measured in rows}) > 1
    per_host: dict[str, dict[str, None]] = {}
    for host, device, measured in rows:
        value = f"({show_value(measured, unit)})" if varies and measured is not None else ""
        per_host.setdefault(host, {})[f"{clean(device)} {value}".strip()] = None
    alike: dict[str, list[str]] = {}
    for host, labels in per_host.items():
        named = [label for label in labels if label]
        alike.setdefault(_items(named, len(named)) if named else "", []).append(host)
    parts: list[str] = []
    left = 0
    for label, names in alike.items():
        entries = host_ranges(names)
        shown, most = entries[:most], max(most - len(entries), 0)
        left += sum(number for _, number in entries[len(shown) :])
        if shown:
            hosts = ", ".join(text for text, _ in shown)
            parts.append(f"{hosts} {label}" if label.startswith("(") else f"{label} on {hosts}" if label else hosts)
    return "; ".join(parts + _more(left))


def short_list(entries: Sequence[tuple[str, int]], most: int = 8, what: str = "host") -> str:
    """Join the first entries, and how many hosts are left: 'a, b; +4 more hosts'."""
    shown = ", ".join(text for text, _ in entries[:most])
    return "; ".join(([shown] if shown else []) + _more(sum(number for _, number in entries[most:]), what))


def _more(left: int, what: str = "host") -> list[str]:
    return [f"+{count(left, f'more {what}')}"] if left else []


def compare(measured: Any, expected: Any, unit: str = "") -> str:
    """'31, expected 32 devices', or whichever of the two is known."""
    return versus(show_value(measured, "" if expected is not None else unit), show_value(expected, unit))


def compare_group(where: Sequence[tuple[str, str, Any]], expected: Any, unit: str = "") -> str:
    """Do the same for everything a group measured: '3 to 9, expected 0 errors'."""
    return versus(measured_range(where, "" if expected is not None else unit), show_value(expected, unit))


def versus(measured: str, expected: str) -> str:
    """Two values already in words, side by side."""
    if measured and expected:
        return f"{measured}, expected {expected}"
    return measured or (f"expected {expected}" if expected else "")


def example(group: TroubleGroup) -> bool:
    """Tell whether the group's message speaks of one occurrence among several that differ."""
    return len({(device, show_value(measured)) for _, device, measured in group.where}) > 1


def covered(group: TroubleGroup, fleet: Iterable[FindingDict]) -> bool:
    """Tell whether a finding about the fleet says what this group says, of all its hosts."""
    return any(
        finding.get("check") == group.check
        and as_status(finding.get("status")) is group.status
        and set(group.hosts) <= set(hosts_of(finding))
        for finding in fleet
    )


def measured_range(where: Iterable[tuple[str, str, Any]], unit: str = "") -> str:
    """'4 errors', '3 to 9 errors' or '3 different values': what a group measured; '' when nothing was."""
    values = [measured for _, _, measured in where if measured is not None]
    shown = list(dict.fromkeys(show_value(value) for value in values))
    if len(shown) <= 1:
        return show_value(values[0], unit) if values else ""
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return f"{show_value(min(values))} to {show_value(max(values), unit)}"
    return _items(shown[:3], len(shown[:3])) + (f", +{len(shown) - 3} more" if len(shown) > 3 else "")


def no_go_parts(rows: Iterable[NodeRow]) -> str:
    """'2 unreachable, 1 unknown': what of the no-go nodes was not measured; '' when all were."""
    bad = [row for row in rows if row.verdict is Verdict.NO_GO]
    unreachable = sum(row.status is Status.UNREACHABLE for row in bad)
    unknown = sum(row.status not in (Status.UNREACHABLE, Status.FAIL) for row in bad)
    parts = ((unreachable, "unreachable"), (unknown, "unknown"))
    return ", ".join(f"{number:,} {word}" for number, word in parts if number)


def blocks(status: object) -> bool:
    """Tell whether this status stops a node."""
    return status in BLOCKING


def rank(status: object) -> int:
    """Severity of a status given as an enum or as its word; an unknown word ranks as UNKNOWN does."""
    return RANK[as_status(status)]
