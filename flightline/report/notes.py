"""What is said beside a verdict: why it is so where the counts do not show it, and what came late."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flightline.fleet.result import Report
from flightline_node.model import LEVELS, Verdict

from .scope import left_out, waived_findings
from .text import blocks, clean, count, host_ranges, short_list


def verdict_notes(report: Report) -> list[str]:
    """Plain sentences about a verdict that the counts alone do not explain."""
    notes: list[str] = []
    if not report.run.finished_at:
        notes.append("The run did not finish: this is what was measured until now.")
    notes += [*late(report), *left_out(report), *waived_findings(report), *proven(report)]
    if report.verdict is Verdict.GO:
        return notes
    if not report.rows:
        notes.append("No-go because there is no node in this run.")
    elif all(row.verdict is Verdict.GO for row in report.rows):
        notes.append("Every node is go by itself; what blocks is about the fleet as a whole.")
    return [*notes, *_without_evidence(report)]


def _without_evidence(report: Report) -> Iterable[str]:
    silent = [
        row.host
        for row in report.rows
        if row.verdict is Verdict.NO_GO and not any(blocks(status) for status in (row.status, *row.cells.values()))
    ]
    if silent:
        yield f"No-go because nothing was judged on: {short_list(host_ranges(silent))}"


def proven(report: Report) -> Iterator[str]:
    """How old the nodes' proofs by active levels are: a go of level quick says nothing of what only a load shows."""
    for level in LEVELS[1:]:
        known = {host: hours for host, of in report.proofs.items() if (hours := of.get(level)) is not None}
        if known:
            oldest = max(known, key=known.__getitem__)
            many, all_ = len(known), count(len(report.proofs), "node")
            yield f"Proven at level {level}: {many} of {all_}, the oldest {known[oldest]:.0f} h ago ({clean(oldest)})."
    unproven = [host for host, of in report.proofs.items() if not any(hours is not None for hours in of.values())]
    if unproven and report.run.level == LEVELS[0]:
        yield f"Not proven at any active level: {short_list(host_ranges(unproven))}"


def late(report: Report) -> Iterator[str]:
    """Who answered after the deadline; whoever acted upon the first verdict must see that this is another one."""
    if not report.late:
        return
    who, many = short_list(host_ranges(report.late)), count(len(report.late), "node")
    first = f" The first verdict, {report.first}, was given without them and stays on record." if report.first else ""
    yield f"late: {many} answered after the deadline: {who}.{first}"
