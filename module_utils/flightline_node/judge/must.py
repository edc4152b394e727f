"""What must be judged: for each check of a run, the reasons for which it may be skipped. The same table on both sides.

A node answers; the control side makes the table from what it knows itself, and decides by it what the answer proves.
A check without an admissible reason to skip it wants a measurement.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from ..bounds import MAX_MESSAGE_CHARS
from ..model import BLOCKING, EVIDENCE, Check, Finding, Remedy, Site, SkipReason, Status, Verdict
from ..names import check_id
from .reasons import NOT_TAKEN
from .skips import NO_EXPECTATION, NOT_ASKED, NOT_COLLECTED

MEASURED = EVIDENCE - {Status.INFO}
WORSE = frozenset({Status.WARN, *BLOCKING})


class Condition(NamedTuple):
    """What a node's other checks must say for a reason: one of `worse` found something, one of `measured` was."""

    worse: Tuple[str, ...] = ()
    measured: Tuple[str, ...] = ()


class Wanted(NamedTuple):
    """One check of a run. reasons: admissible ones by id. informs: an INFO alone is a measurement."""

    reasons: Mapping[str, Condition]
    informs: bool = False


class Answer(NamedTuple):
    """What a finding says: its check, its status, and of a SKIP its reason."""

    check: str
    status: Status
    reason: str = ""


def answer_of(finding: Finding) -> Answer:
    """What a finding says."""
    return Answer(finding.check, finding.status, finding.reason)


Table = Mapping[str, Wanted]
NOTHING: Table = {}
"""No table: of findings that have passed theirs."""


def table_of(
    checks: Iterable[Check], skipped: Iterable[Check], site: Site, *, required: bool = True
) -> Dict[str, Wanted]:
    """The table of a run. required: a preflight; offline every reason that a check declares is taken."""
    rows = {one.id: Wanted(_reasons(one, site, required), one.informs or not required) for one in checks}
    rows.update({check.id: Wanted({NOT_ASKED.id: Condition()}) for check in skipped})
    return rows


def _reasons(check: Check, site: Site, required: bool) -> Dict[str, Condition]:
    found = {NO_EXPECTATION.id: Condition()} if lacking(check, site) else {}
    if required:
        held = ((reason, reason.when(site)) for reason in check.skips)
        found.update({reason.id: _condition(reason, holds) for reason, holds in held if holds or reason.worse})
    else:
        found.update({reason.id: Condition() for reason in (NOT_COLLECTED, *check.skips)})
    return found


def _condition(reason: SkipReason, holds: bool) -> Condition:
    worse = () if holds else reason.worse
    return Condition(tuple(map(check_id, worse)), tuple(map(check_id, reason.measured)))


def lacking(check: Check, site: Site) -> List[str]:
    """The expectations that a check cannot do without, and that nothing gives."""
    return [name for name in check.expects if getattr(site.expected, name) is None]


def unproven(answers: Sequence[Answer], table: Table) -> Dict[int, str]:
    """Findings that the table does not take, by their places in answers, with what was seen and wanted."""
    seen: Dict[str, List[Status]] = {}
    for answer in answers:
        seen.setdefault(answer.check, []).append(answer.status)
    found = {}
    for place, answer in enumerate(answers):
        row = table.get(answer.check) if answer.status in (Status.SKIP, Status.INFO) else None
        why = _why(answer, row, seen, table) if row else ""
        if why:
            found[place] = why
    return found


def not_taken(finding: Finding, why: str) -> Finding:
    """The finding as it stands where the table does not take it."""
    message = f"{why}; it said: {finding.message}"[:MAX_MESSAGE_CHARS]
    return replace(finding, status=Status.UNKNOWN, remedy=Remedy.INVESTIGATE, message=message, reason=NOT_TAKEN.id)


def _why(answer: Answer, row: Wanted, seen: Mapping[str, Sequence[Status]], table: Table) -> str:
    if answer.status is Status.INFO:
        alone = not row.informs and not {*seen[answer.check]} & {*MEASURED, *BLOCKING}
        return "saw no more than an INFO, wanted a measurement" if alone else ""
    condition = row.reasons.get(answer.reason)
    if condition is not None and _holds(condition, seen, table):
        return ""
    others = f" (or one of {', '.join(row.reasons)})" if row.reasons else ""
    return f"saw it skipped for {answer.reason or 'no reason of the list'}, wanted a measurement{others}"


def _holds(condition: Condition, seen: Mapping[str, Sequence[Status]], table: Table) -> bool:
    """A check that was not asked for cannot be wanted as a witness."""
    asked = [check for check in condition.measured if check in table]
    witnessed = not asked or any({*seen.get(check, ())} & {*MEASURED, *BLOCKING} for check in asked)
    return witnessed and (not condition.worse or any({*seen.get(check, ())} & WORSE for check in condition.worse))


def verdict_of(answers: Iterable[Answer], table: Table = NOTHING) -> Verdict:
    """Go only when nothing blocks, something was measured, and each check of the table was, or was skipped rightly."""
    given = list(answers)
    statuses = {answer.status for answer in given}
    if statuses & BLOCKING or not statuses & EVIDENCE:
        return Verdict.NO_GO
    if table.keys() - {answer.check for answer in given} or unproven(given, table):
        return Verdict.NO_GO
    return Verdict.GO
