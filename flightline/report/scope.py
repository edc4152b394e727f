"""What a verdict does not speak about: checks that were not to run, findings that were waived."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from flightline.fleet.result import NodeRow, Report
from flightline.fleet.together import FABRIC
from flightline_node.judge.checks import CHECKS
from flightline_node.judge.skips import NOT_ASKED
from flightline_node.judge.waivers import is_waived
from flightline_node.model import LEVELS, Status

from ..record.printable import clip
from .text import clean, count, host_ranges, short_list

MOST_NAMED = 6
MOST_WAIVED = 8
MOST_CHARS = 200


def left_out(report: Report) -> Iterator[str]:
    """Nodes on which not every check of the run's level was judged: go then means less than it says."""
    level = report.run.level if report.run.level in LEVELS else LEVELS[0]
    due = [check.id for check in CHECKS.values() if LEVELS.index(check.level) <= LEVELS.index(level)]
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for row in report.rows:
        skipped = _skipped(row)
        judged = [check for check in due if check in row.cells and check not in skipped]
        if judged and len(judged) < len(due):
            alike[tuple(judged)].append(row.host)
    if level == LEVELS[-1] and len(report.rows) > 1 and FABRIC not in report.checks:
        yield "No collective ran over several nodes: flightline preflight over Ansible does, and flightline fabric."
    for ran, hosts in alike.items():
        where = "" if len(hosts) == len(report.rows) else f" on {short_list(host_ranges(hosts))}"
        missing = [check for check in due if check not in ran]
        named = f"only {_names(ran)}" if len(ran) <= len(missing) else f"not {_names(missing)}"
        yield f"{len(ran)} of {count(len(due), 'check')} of level {level} were to run{where}: {named}."


def _skipped(row: NodeRow) -> set[str]:
    return {f["check"] for f in row.findings if f["status"] == Status.SKIP and f.get("reason") == NOT_ASKED.id}


def _names(checks: list[str] | tuple[str, ...]) -> str:
    more = len(checks) - MOST_NAMED
    return ", ".join(checks[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def waived_findings(report: Report) -> Iterator[str]:
    """Waived findings, each once with its hosts."""
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in report.rows:
        for finding in row.findings:
            if is_waived(finding):
                alike[(finding["check"], finding["message"])].append(row.host)
    for (check, message), hosts in list(alike.items())[:MOST_WAIVED]:
        yield f"Set aside: {check} on {short_list(host_ranges(hosts))}, {clip(clean(message), MOST_CHARS)}."
    if len(alike) > MOST_WAIVED:
        yield f"+{len(alike) - MOST_WAIVED:,} more waived findings, all in the JSON report."
