"""May these hosts start a job? The verdict of a stored run, asked by the playbooks that use the nodes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from flightline_node.model import BLOCKING, Verdict

from ..fleet.judgement import judge_run
from ..fleet.result import NodeRow, Report
from ..report.scope import left_out
from ..store.sqlite import Store, status_of

SECONDS_PER_HOUR = 3600.0
CLOCKS_MAY_DIFFER_H = 0.1


def check(store: Store, run_id: str, hosts: Sequence[str] = (), max_age_hours: float | None = None) -> dict[str, Any]:
    """Judge a stored run for some hosts (all of the run when empty).

    Returns run, verdict, counts, go (host names), no_go (host -> root causes), reasons (empty when the job may
    start) and left_out (sentences about checks that were not to run: a go says nothing of them). A host that the run
    did not judge, a run too old and a fleet fault are reasons as well.
    Raises StoreError when the run is not there.
    """
    report = judge_run(store, run_id)
    rows = {row.host: row for row in report.rows}
    wanted = list(hosts) or list(rows)
    no_go = {host: _why(rows.get(host)) for host in wanted if not _is_go(rows.get(host))}
    reasons = [f"{host}: {why[0]}" for host, why in no_go.items()] + _too_old(report, max_age_hours)
    if not hosts and report.verdict is Verdict.NO_GO and not no_go:
        reasons += [finding["message"] for finding in report.fleet if status_of(finding) in BLOCKING]
    return {
        "run": report.run.id,
        "verdict": str(Verdict.NO_GO if reasons else Verdict.GO),
        "counts": report.counts,
        "go": [host for host in wanted if host not in no_go],
        "no_go": no_go,
        "reasons": reasons,
        "left_out": list(left_out(report)),
    }


def _is_go(row: NodeRow | None) -> bool:
    return row is not None and row.verdict is Verdict.GO


def _why(row: NodeRow | None) -> list[str]:
    if row is None:
        return ["not judged in this run"]
    return [trouble.said for trouble in row.troubles] or ["nothing could be judged"]


def _too_old(report: Report, max_age_hours: float | None) -> list[str]:
    if max_age_hours is None:
        return []
    age = datetime.now(timezone.utc) - datetime.fromisoformat(report.run.started_at)
    hours = age.total_seconds() / SECONDS_PER_HOUR
    if hours < -CLOCKS_MAY_DIFFER_H:
        return [f"judged {-hours:.1f} hours from now by this clock, wanted one of the past: set the clock, judge again"]
    return [f"judged {hours:.1f} hours ago, wanted at most {max_age_hours:g}"] if hours > max_age_hours else []
