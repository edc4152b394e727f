"""Tables of what a check answers: a row says what is judged, the status wanted, and what its finding must say.

    test_swap = table(
        row("off", judging("swap", {"meminfo": {"swap_total_kib": 0}}), PASS),
        row("on", judging("swap", {"meminfo": {"swap_total_kib": 2 << 20}}), WARN, measured=2048, remedy=FIX_CONFIG),
        row("unreadable", judging("swap", {"meminfo": BROKEN}), UNKNOWN),
    )  # fmt: skip

`Wanted` lists what a row can ask. Rows of several values are a comprehension, and so are rows that share facts:
`*(each for facts in [...] for each in (row(...), row(...)))`. A table ends with `# fmt: skip`: its layout is by hand, so
that a row stays a line or two. A test that needs more than a row can say is a function of its own below the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypedDict, Unpack

import pytest

from flightline_node.model import Finding, Remedy, Status
from tests.harness import BROKEN, judge_facts, only, status

PASS, INFO, WARN, FAIL = Status.PASS, Status.INFO, Status.WARN, Status.FAIL
UNKNOWN, SKIP = Status.UNKNOWN, Status.SKIP
NONE, INVESTIGATE, FIX_CONFIG, REBOOT = Remedy.NONE, Remedy.INVESTIGATE, Remedy.FIX_CONFIG, Remedy.REBOOT
RESET_GPU, REPLACE = Remedy.RESET_GPU, Remedy.REPLACE
UPDATE_SOFTWARE, CONTACT_SUPPORT, RESTART_APP = Remedy.UPDATE_SOFTWARE, Remedy.CONTACT_SUPPORT, Remedy.RESTART_APP


class Wanted(TypedDict, total=False):
    """What a row asks of the one finding that has its status; of a text, one part or several."""

    remedy: Remedy
    measured: Any
    expected: Any
    unit: str
    device: dict[str, Any]  # the whole device
    of: dict[str, Any]  # some of its fields
    index: int  # its number alone
    evidence: tuple[str, ...]  # all its lines
    first: str  # the first line
    shows: str | tuple[str, ...]  # stands in the first line
    reason: str
    message: str  # the whole message
    says: str | tuple[str, ...]  # stands in the message
    silent: str | tuple[str, ...]  # does not
    starts: str | tuple[str, ...]
    ends: str | tuple[str, ...]
    count: int  # so many findings have the status; with other fields it is one
    all: int  # so many findings there are
    alone: bool  # the finding is the only one
    every: bool  # all findings have the status
    statuses: tuple[Status, ...]  # of all findings, in order


class Judged(Sequence[Finding]):
    """The findings of a check for given facts, judged when somebody first looks."""

    def __init__(self, judge: Callable[[], list[Finding]]) -> None:
        self._judge = judge

    @cached_property
    def _findings(self) -> list[Finding]:
        return self._judge()

    def __getitem__(self, index: Any) -> Any:
        return self._findings[index]

    def __len__(self) -> int:
        return len(self._findings)

    def __repr__(self) -> str:
        return repr(self._findings)


def judging(check_id: str, facts: dict[str, Any], *instance_type: str, **more: Any) -> Judged:
    """What `tests.harness.judge_facts` gives for them, when a row asks; later changes do not reach the facts."""
    kept = {name: parsed if parsed is BROKEN else deepcopy(parsed) for name, parsed in facts.items()}
    return Judged(lambda: judge_facts(check_id, kept, *instance_type, **more))


def _place(facts: Any, path: str) -> tuple[Any, Any]:
    *way, last = (int(step) if step.isdigit() else step for step in path.split("."))
    for step in way:
        facts = facts[step]
    return facts, last


def changed(facts: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The facts, with each value put where its path leads: {"lspci.devices.3.width": 8}."""
    for path, value in changes.items():
        place, last = _place(facts, path)
        place[last] = value
    return facts


def without(facts: dict[str, Any], *paths: str) -> dict[str, Any]:
    """The facts, less what the paths lead to."""
    for path in paths:
        place, last = _place(facts, path)
        del place[last]
    return facts


_OF_ALL: dict[str, Callable[[Sequence[Finding], Status], Any]] = {
    "count": lambda findings, of: sum(finding.status is of for finding in findings),
    "all": lambda findings, of: len(findings),
    "alone": lambda findings, of: len(findings) == 1,
    "every": lambda findings, of: all(finding.status is of for finding in findings),
    "statuses": lambda findings, of: tuple(finding.status for finding in findings),
}
_OF_TEXT: dict[str, Callable[[str, str], bool]] = {
    "says": str.__contains__,
    "silent": lambda text, part: part not in text,
    "starts": str.startswith,
    "ends": str.endswith,
    "shows": str.__contains__,
}


def _field(finding: Finding, name: str, wanted: Any) -> Any:
    """A field as the finding has it; of a text, the parts that are wanted where it has each, else the text."""
    if name == "of":
        return {key: finding.device.get(key) for key in wanted}
    if name == "index":
        return finding.device.get("index")
    if name == "first":
        return finding.evidence[0]
    if name not in _OF_TEXT:
        return getattr(finding, name)
    text = finding.evidence[0] if name == "shows" else finding.message
    parts = (wanted,) if isinstance(wanted, str) else wanted
    return wanted if all(_OF_TEXT[name](text, part) for part in parts) else text


def _seen(findings: Sequence[Finding], of: Status, wanted: Wanted) -> dict[str, Any]:
    """Each field that is wanted, as the findings have it."""
    seen = {name: look(findings, of) for name, look in _OF_ALL.items() if name in wanted}
    rest = wanted.keys() - seen.keys()
    if rest:
        finding = only(findings, of)
        seen.update({name: _field(finding, name, each) for name, each in wanted.items() if name in rest})
    return seen


@dataclass(frozen=True)
class Row:
    """What is judged, in one or several ways that come to the same, and what is wanted of each finding."""

    title: str
    found: tuple[Sequence[Finding], ...]
    wanted: tuple[tuple[Status, Wanted], ...]

    def also(self, wanted: Status, **fields: Unpack[Wanted]) -> Row:
        """The row, with one more finding wanted beside the worst."""
        return replace(self, wanted=(*self.wanted, (wanted, fields or {"count": 1})))

    def hold(self) -> None:
        """Judge, and compare."""
        for findings in self.found:
            assert status(findings) is self.wanted[0][0], f"saw {findings}, wanted {self.wanted}"
            for of, wanted in self.wanted:
                seen = _seen(findings, of, wanted)
                assert seen == wanted, f"saw {seen}, wanted {wanted}, of {findings}"


def row(
    title: str, found: list[Finding] | Judged | list[Judged], wanted: Status | str, **fields: Unpack[Wanted]
) -> Row:
    """A row: `wanted` is the worst status. `found` may be several judgements; each must come to the same."""
    ways: tuple[Sequence[Finding], ...] = (found,) if isinstance(found, Judged) else ()
    if isinstance(found, list):
        ways = tuple(one for one in found if isinstance(one, Judged))
        ways = ways or ([one for one in found if isinstance(one, Finding)],)
    return Row(title, ways, ((Status(wanted), fields),))


def table(*rows: Row) -> Callable[..., None]:
    """A test function that holds each row."""

    @pytest.mark.parametrize("each", rows, ids=[each.title for each in rows])
    def test(each: Row) -> None:
        each.hold()

    return test
