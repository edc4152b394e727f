"""A judged run as alerts: what blocks, where, and which earlier troubles are over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from flightline_node.model import BLOCKING, EVIDENCE, Verdict, as_status, device_label

from ..fleet.causes import EXPLAINED
from ..fleet.remedies import how
from ..fleet.result import FindingDict, NodeRow, Report
from ..record.reasons import NOT_JUDGED
from ..report.text import show_value
from ..store.rows import NODE, REACHABLE
from ..tell.digest import Alert, Digest, DigestPlan, device_text

FLEET = "fleet"


def alerts_of(report: Report) -> list[Alert]:
    """The root of each trouble of a run, as its report shows it; troubles of the fleet alone come last."""
    names = _names(report.rows)
    at = report.run.finished_at or report.run.started_at
    found = [
        _alert(names[row.host], finding, at, row.host, row.instance_id)
        for row in report.rows
        for finding in _blocking(row)
    ]
    lonely = [finding for finding in report.fleet if as_status(finding["status"]) in BLOCKING and not finding["hosts"]]
    return found + [_alert(FLEET, finding, at) for finding in lonely]


def healthy(report: Report) -> set[tuple[str, str]]:
    """(node, check) pairs that were measured and do not block. A node that was measured at all is reachable."""
    names, good = _names(report.rows), set[tuple[str, str]]()
    for row in report.rows:
        measured = {check for check, status in row.cells.items() if status in EVIDENCE}
        good |= {(names[row.host], check) for check in measured if row.cells[check] not in BLOCKING}
        if measured:
            good |= {(names[row.host], check) for check in (REACHABLE, NODE) if check not in row.cells}
    if not any(as_status(finding["status"]) in BLOCKING for finding in report.fleet):
        good |= {(FLEET, finding["check"]) for finding in report.fleet} | {(FLEET, "inventory")}
    return good


def headline(report: Report, scope: str) -> str:
    """A run's verdict in one line."""
    counts, verdict = report.counts, str(report.verdict).upper()
    told = f"{counts['no_go']:,} of {counts['nodes']:,} nodes no-go" if report.verdict is Verdict.NO_GO else "all good"
    return f"Flightline {verdict} {scope}: {told}"


def digest_of(report: Report, plan: DigestPlan, scope: str, link: str = "", store: str = "") -> Digest | None:
    """The one message of a run; None when there is nothing new to say."""
    if not plan.tell and not plan.recovered:
        return None
    run = report.run
    title = headline(report, scope) + (f", {len(plan.recovered):,} recovered" if plan.recovered else "")
    facts = tuple(fact for fact in (f"run {run.id}", f"level {run.level}", run.inventory, run.finished_at) if fact)
    told, over, known = tuple(plan.tell), tuple(plan.recovered), len(plan.quiet)
    return Digest(title, told, over, known, run.id, facts, link, store=store, scope=scope)


def _names(rows: list[NodeRow]) -> Mapping[str, str]:
    """Host -> what its alerts are kept under: the instance id, unless several hosts claim it."""
    ids = Counter(row.instance_id for row in rows)
    return {row.host: row.instance_id if row.instance_id and ids[row.instance_id] == 1 else _both(row) for row in rows}


def _both(row: NodeRow) -> str:
    return f"{row.instance_id}@{row.host}" if row.instance_id else row.host


def _blocking(row: NodeRow) -> Iterator[FindingDict]:
    found = [finding for finding in row.findings if as_status(finding.get("status")) in BLOCKING]
    folded = {id(trouble.root): trouble.folded for trouble in row.troubles}
    for finding in found:
        if not finding.get(EXPLAINED):
            yield {**finding, "message": f"{finding.get('message') or ''}{folded.get(id(finding), '')}"}
    if row.verdict is Verdict.NO_GO and not found:
        yield {"check": NODE, "status": "UNKNOWN", "message": "nothing could be judged", "remedy": "INVESTIGATE",
               "reason": NOT_JUDGED.id}  # fmt: skip


def _alert(node: str, finding: Mapping[str, Any], at: str, host: str = "", instance_id: str = "") -> Alert:
    unit, device = str(finding.get("unit") or ""), finding.get("device") or {}
    return Alert(
        node=node,
        check=str(finding["check"]),
        status=str(finding["status"]),
        message=str(finding.get("message") or ""),
        host=host,
        instance_id=instance_id,
        device=device_text(device_label(device), device),
        measured=show_value(finding.get("measured"), unit),
        expected=show_value(finding.get("expected"), unit),
        remedy=str(finding.get("remedy") or "INVESTIGATE"),
        remedy_text=how(finding).text,
        at=at,
    )
