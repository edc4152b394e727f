"""Judge a bundle: facts and expectations in, findings and a verdict out. Pure but for reading files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from ..know.expected import NO_TYPE, Expected
from ..model import LEVELS, Check, Facts, Finding, Remedy, Site, Status, Verdict
from ..read.bundle import Bundle
from ..read.facts import ELIDED, READ, UNREADABLE, FactBook, Parsed
from ..read.parsers import PARSERS
from ..settings import NodeSettings
from . import must, reasons, site_answers
from .checks import reasons_of
from .context import Context, Measures
from .skips import NO_EXPECTATION, NOT_ASKED, NOT_COLLECTED
from .unread import accounted
from .waivers import apply as apply_waivers


@dataclass(frozen=True)
class Judgement:
    """The outcome for one node."""

    verdict: Verdict
    findings: Tuple[Finding, ...]
    measures: Measures
    facts: Dict[str, Facts]
    unreadable: Dict[str, str]


def judge(
    bundle: Bundle,
    expected: Expected,
    settings: NodeSettings,
    now: datetime,
    *,
    required: bool,
    names: Sequence[str] = (),
    node: bool = True,
) -> Judgement:
    """Judge every selected check.

    required: in a preflight the level says what must be measured, so a missing file is
    UNKNOWN; offline it is SKIP, so that one file can be judged alone. names: the host's
    names, for the scope of waivers. node: this is a node's preflight, and not a job's output that must be there.
    """
    book = FactBook(bundle, {**PARSERS, **site_answers.parsers(settings.checks)})
    measures: Measures = {}
    due = [
        check for check in settings.checks if not required or LEVELS.index(check.level) <= LEVELS.index(settings.level)
    ]
    findings = answers(due, book, expected, settings, now, measures, required=required)
    findings += [
        Finding(check.id, Status.SKIP, "skipped on request", reason=NOT_ASKED.id) for check in settings.skipped
    ]
    site = Site(expected, settings.options, settings.level)
    findings = settled(findings, must.table_of(due, settings.skipped, site, required=required and node))
    findings = apply_waivers(findings, settings.waivers, names, now.date())
    verdict = must.verdict_of(map(must.answer_of, findings))
    return Judgement(verdict, tuple(findings), measures, book.read_all(), book.unreadable())


def settled(findings: Sequence[Finding], table: must.Table) -> List[Finding]:
    """The findings; what the table does not take is UNKNOWN."""
    kept = list(findings)
    for place, why in must.unproven([must.answer_of(one) for one in kept], table).items():
        kept[place] = must.not_taken(kept[place], why)
    return kept


def answers(
    checks: Iterable[Check],
    book: FactBook,
    expected: Expected,
    settings: NodeSettings,
    now: datetime,
    measures: Measures,
    *,
    required: bool,
) -> List[Finding]:
    """What the checks say of some facts, before waivers."""
    return [
        finding
        for check in checks
        for finding in _judge_check(check, book, expected, settings, now, measures, required)
    ]


def _judge_check(
    check: Check,
    book: FactBook,
    expected: Expected,
    settings: NodeSettings,
    now: datetime,
    measures: Measures,
    required: bool,
) -> List[Finding]:
    site = (expected, settings.thresholds, settings.level, now, measures, settings.options)
    context = Context(check, book.lookup, *site, broken=book.broken, required=required)
    try:
        blocked = _not_applicable(check, context) or _not_measured(check, context, book, required)
        if blocked:
            return [blocked]
        findings = list(check.evaluate(context))
    except Exception as error:  # one broken check must cost only its own answer, and never pass
        return [context.unknown(reasons.CHECK_BROKE, f"the check itself broke: {type(error).__name__}: {error}")]
    if not findings:
        return [context.unknown(reasons.NO_ANSWER, reasons.NO_ANSWER.says)]
    parsed = [book.get(name) for name in (*check.needs, *check.needs_any)]
    if not required and any(one.facts and one.facts.get("partial") for one in parsed):
        findings = [_not_in_this_form(context, finding) for finding in findings]
    if not required and any(one.facts and one.facts.get(ELIDED) for one in parsed):
        findings = [_of_what_was_left(context, check, finding) for finding in findings]
    return _downgrade_untrusted(context, accounted(context, findings, (one.facts for one in parsed)), parsed)


def _not_applicable(check: Check, context: Context) -> Optional[Finding]:
    skip = check.applies(context) if check.applies else None
    if skip:
        return context.skip(skip)
    missing = ", ".join(must.lacking(check, Site(context.expected)))
    if not missing:
        return None
    kind = context.expected.instance_type
    untyped = f"needs an instance type (or expected {missing})"
    return context.skip(
        NO_EXPECTATION.because(untyped if kind == NO_TYPE else f"no expected {missing} known for {kind}")
    )


def _not_measured(check: Check, context: Context, book: FactBook, required: bool) -> Optional[Finding]:
    blockers = [(name, book.get(name)) for name in check.needs if book.get(name).state != READ]
    choices = [(name, book.get(name)) for name in check.needs_any]
    if choices and all(item.state != READ for _, item in choices):
        blockers += choices
    if not blockers:
        return None
    broken = next((item for _, item in blockers if item.state == UNREADABLE), None)
    if broken:
        message = f"could not be measured: {broken.reason}"
        return context.unknown(reasons.of(broken.why), message, evidence=broken.evidence)
    if required:
        missing = ", ".join(name for name, _ in blockers)
        return context.unknown(reasons.NOT_COLLECTED, f"{NOT_COLLECTED.says}: {missing}")
    return context.skip(NOT_COLLECTED.because())


_LACKING = frozenset(
    one.id for one in (reasons.NO_VALUE, reasons.VERSION_UNREAD, reasons.NO_GPU_LISTED, reasons.NO_ANSWER)
)


def _not_in_this_form(context: Context, finding: Finding) -> Finding:
    """A short form of a tool's output lacks what nobody asked it for: no evidence, and no trouble either."""
    if finding.status is not Status.UNKNOWN or finding.reason not in _LACKING:
        return finding
    return context.skip(NOT_COLLECTED.because("this form of the output does not have it"))


def _of_what_was_left(context: Context, check: Check, finding: Finding) -> Finding:
    """What a list lacks, of which a person brought a part: told, and no evidence against the node."""
    counts = {reason.id for reason in reasons_of(check.id) if reason.counts}
    if finding.reason not in counts:
        return finding
    return replace(
        finding, status=Status.INFO, remedy=Remedy.NONE, message=f"lines were left out; shown is: {finding.message}"
    )


def _downgrade_untrusted(context: Context, findings: Iterable[Finding], parsed: Iterable[Parsed]) -> List[Finding]:
    """A PASS from a tool that did not end well is not evidence; what it found wrong still is."""
    doubtful = [item for item in parsed if item.state == READ and item.caveat]
    if not doubtful:
        return list(findings)
    doubts = "; ".join(dict.fromkeys(item.caveat for item in doubtful))
    result: List[Finding] = []
    for finding in findings:
        if finding.status in (Status.PASS, Status.INFO):
            evidence = [line for item in doubtful for line in item.evidence]
            message = f"not trusted, {doubts}; it printed: {finding.message}"
            finding = context.unknown(reasons.NOT_TRUSTED.of(doubtful[0].why.part), message, evidence=evidence)
        result.append(finding)
    return result


def to_json(judgement: Judgement, instance_type: str) -> Dict[str, Any]:
    """The object `flightline judge --json` prints."""
    return {
        "verdict": str(judgement.verdict),
        "instance_type": instance_type,
        "findings": [finding.to_dict() for finding in judgement.findings],
        "facts": judgement.facts,
        "unreadable": judgement.unreadable,
        "measures": judgement.measures,
    }
