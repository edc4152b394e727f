"""One line for each no-go node: what to do with it, and the root of its trouble."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from flightline.fleet.causes import READ_CHARS, Trouble
from flightline.fleet.groups import message_shape
from flightline.fleet.remedies import how
from flightline.fleet.result import FindingDict, NodeRow
from flightline_node.model import Remedy, Status, Verdict, as_remedy, as_status

from ..record.printable import clip
from .text import clean, count, device_label, device_of, host_ranges, short_list

MOST_LINES = 40
"""Nodes that get a line each; of more, those with the same trouble share one."""

MANY = 64
"""Nodes above which a fleet is ordered by rack or zone."""

MOST_NAMED = 2
NOTHING = "nothing was judged on it"
_NUMBER = re.compile(r"([0-9]+)")
_UNMEASURED = "could not be measured: "
_SOURCE = re.compile(r"^(?:nvidia-smi|lspci|kernel): ")
_CONNECTING = re.compile(r"(?<=ssh: )connect to host \S+ (?=port )")
"""What the line's other columns say, or what nobody needs to act."""


@dataclass(frozen=True)
class NodeLine:
    """hosts: more than one share it. more: findings that the root explains; also: other root causes, by check."""

    hosts: list[str]
    status: Status
    remedy: Remedy
    check: str
    text: str
    more: int = 0
    also: list[str] = field(default_factory=list)

    @property
    def tail(self) -> str:
        """' (+8 findings; also disk_space)': how many the root explains, and the checks of other roots."""
        rest = [f"{len(self.also) - MOST_NAMED} more"] if self.also[MOST_NAMED:] else []
        also = ", ".join([*self.also[:MOST_NAMED], *rest])
        parts = [f"+{count(self.more, 'finding')}"] if self.more else []
        parts += [f"also {also}"] if also else []
        return f" ({'; '.join(parts)})" if parts else ""


@dataclass(frozen=True)
class RemedyStep:
    """What to do, in words, with the hosts that need it. own: in words of the checks."""

    remedy: Remedy
    text: str
    own: bool
    checks: list[str]
    hosts: list[str]


def natural(text: str) -> list[tuple[int, int, str]]:
    """A key by which gpu-9 comes before gpu-10."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _NUMBER.split(text[:200]) if part]


def lines(rows: Sequence[NodeRow]) -> list[NodeLine]:
    """The no-go nodes by name, in a large fleet by place first; of too many those in the same trouble share one."""
    ordered = sorted(rows, key=lambda row: (natural(row.place) if len(rows) > MANY else [], natural(row.host)))
    found = [_line(row) for row in ordered if row.verdict is Verdict.NO_GO]
    if len(found) <= MOST_LINES:
        return found
    joined: dict[object, list[NodeLine]] = {}
    for line in found:
        joined.setdefault((line.remedy, line.check, message_shape(line.text), tuple(line.also)), []).append(line)
    return sorted((_join(same) for same in joined.values()), key=lambda line: (line.remedy.row.rank, -len(line.hosts)))


def steps(rows: Iterable[NodeRow]) -> list[RemedyStep]:
    """What to do about the no-go nodes; each node once, under the remedy that makes its others needless."""
    found: dict[tuple[Remedy, str, bool], RemedyStep] = {}
    for row in rows:
        if row.verdict is Verdict.NO_GO and row.troubles:
            first = row.troubles[0]
            key = (as_remedy(first.root.get("remedy")), *how(first.root, first.cause))
            step = found.setdefault(key, RemedyStep(*key, [], []))
            step.hosts.append(row.host)
            check = str(first.root["check"])
            if check not in step.checks:
                step.checks.append(check)
    return sorted(found.values(), key=lambda step: (step.remedy.row.rank, -len(step.hosts)))


def _line(row: NodeRow) -> NodeLine:
    if not row.troubles:
        return NodeLine([row.host], Status.UNKNOWN, Remedy.INVESTIGATE, "", NOTHING)
    first = row.troubles[0]
    check = str(first.root.get("check", ""))
    same = [one for one in row.troubles if _alike(one, first)]
    also = dict.fromkeys(str(one.root.get("check", "")) for one in row.troubles if one not in same)
    more = sum(len(one.explained) for one in row.troubles)
    status, remedy = as_status(first.root.get("status")), as_remedy(first.root.get("remedy"))
    return NodeLine([row.host], status, remedy, check, said([one.root for one in same]), more, list(also))


def alike(findings: Iterable[FindingDict]) -> list[list[FindingDict]]:
    """Findings that say the same of several parts of a node, as of all its GPUs, together."""
    found: dict[object, list[FindingDict]] = {}
    for finding in findings:
        found.setdefault((finding.get("status"), *_key(finding)), []).append(finding)
    return list(found.values())


def _alike(one: Trouble, other: Trouble) -> bool:
    """The same trouble of several parts of a node, as of all its GPUs."""
    return _key(one.root) == _key(other.root)


def _key(root: FindingDict) -> tuple[object, ...]:
    message = str(root.get("message", ""))[:READ_CHARS]
    return root.get("check"), root.get("remedy"), message_shape(message, "", device_label(device_of(root)))


def said(roots: Sequence[FindingDict]) -> str:
    """The message, with the parts it is about before it: 'GPU 0-7: persistence mode Disabled'."""
    message = clean(str(roots[0].get("message", ""))[:READ_CHARS]).removeprefix(_UNMEASURED)
    message = _CONNECTING.sub("", _SOURCE.sub("", message))
    labels = [label for label in dict.fromkeys(device_label(device_of(root)) for root in roots) if label]
    if not labels or (len(labels) == 1 and labels[0] in message):
        return message
    bare = message.removeprefix(f"{labels[0]}: ")
    return f"{_parts(labels)}: {bare}"


def _parts(labels: Sequence[str]) -> str:
    """'GPU 0-7', 'GPU 0, 3', else the labels."""
    numbers = [label.removeprefix("GPU ") for label in labels]
    if len(labels) > 1 and all(number.isdecimal() for number in numbers):
        ranges = [text.strip("[]") for text, _ in host_ranges(numbers)]
        return "GPU " + ", ".join(ranges)
    return clip(", ".join(labels), 60)


def _join(same: Sequence[NodeLine]) -> NodeLine:
    first = same[0]
    if len(same) == 1:
        return first
    hosts = [host for line in same for host in line.hosts]
    text = first.text if all(line.text == first.text for line in same) else f"e.g. {first.text}"
    return NodeLine(hosts, first.status, first.remedy, first.check, text, max(line.more for line in same), first.also)


def where(line: NodeLine, most: int = 6) -> str:
    """The hosts of a line, in ranges."""
    return short_list(host_ranges(line.hosts), most)
