"""junit.xml for continuous integration: a suite per host, a case per check.

FAIL is a failure, UNKNOWN and UNREACHABLE are errors, SKIP is skipped with its reason, WARN and INFO pass with
their text in system-out. A host or a run that is no-go without a failing case gets one, so that no reader of this
file sees green where the verdict is red.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import IO, Any
from xml.sax.saxutils import escape

from flightline.result import FindingDict, NodeRow, Report
from flightline_node.model import Status, Verdict, as_status

from .text import blocks, device_label, device_of, evidence_of, hosts_of, rank, show_value

FLEET = "fleet"
VERDICT = "verdict"
Cases = dict[str, Status]
Totals = tuple[int, int, int, int]  # tests, failures, errors, skipped

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_QUOTED = {'"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}


def write(report: Report, stream: IO[str]) -> None:
    """Write the whole document; suites are streamed, the totals are counted first."""
    totals, fleet = _totals(report), _fleet_cases(report)
    stream.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    stream.write(f'<testsuites name="{attribute("flightline " + report.run.id)}"{_counts(totals)}>\n')
    for row in report.rows:
        stream.write("".join(_suite(row, report)))
    if fleet:
        stream.write("".join(_fleet_suite(report, fleet)))
    stream.write("</testsuites>\n")


def attribute(text: object) -> str:
    """Text for a double-quoted attribute; characters that XML 1.0 forbids become U+FFFD."""
    return _quoted(str(text))


@lru_cache(maxsize=4096)
def _quoted(text: str) -> str:
    """Cached because every host has the same checks and mostly the same messages."""
    return escape(_legal(text), _QUOTED)


def _legal(text: object) -> str:
    return _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", str(text))


def _cases(row: NodeRow) -> Cases:
    """Check id -> worst status of a host, from its cells and its findings together."""
    cases: Cases = dict(row.cells)
    for finding in row.findings:
        check, status = str(finding.get("check", "")), as_status(finding.get("status"))
        if check not in cases or rank(status) > rank(cases[check]):
            cases[check] = status
    if row.verdict is Verdict.NO_GO and not any(blocks(status) for status in cases.values()):
        cases[VERDICT] = Status.UNKNOWN
    return cases


def _fleet_cases(report: Report) -> Cases:
    cases: Cases = {}
    for finding in report.fleet:
        check, status = str(finding.get("check", "")), as_status(finding.get("status"))
        if check not in cases or rank(status) > rank(cases[check]):
            cases[check] = status
    red = any(blocks(status) for status in cases.values()) or any(row.verdict is Verdict.NO_GO for row in report.rows)
    if report.verdict is Verdict.NO_GO and not red:
        cases[VERDICT] = Status.UNKNOWN
    return cases


def _count(cases: Iterable[Status]) -> Totals:
    seen = list(cases)
    return (
        len(seen),
        seen.count(Status.FAIL),
        seen.count(Status.UNKNOWN) + seen.count(Status.UNREACHABLE),
        seen.count(Status.SKIP),
    )


def _totals(report: Report) -> Totals:
    parts = [_count(_cases(row).values()) for row in report.rows] + [_count(_fleet_cases(report).values())]
    tests, failures, errors, skipped = (sum(column) for column in zip(*parts))
    return tests, failures, errors, skipped


def _counts(totals: Totals) -> str:
    tests, failures, errors, skipped = totals
    return f' tests="{tests}" failures="{failures}" errors="{errors}" skipped="{skipped}"'


def _suite(row: NodeRow, report: Report) -> Iterator[str]:
    cases, host = _cases(row), attribute(row.host)
    yield f'<testsuite name="{host}" hostname="{host}" timestamp="{attribute(report.run.started_at)}"'
    yield f' time="{row.seconds:.3f}"{_counts(_count(cases.values()))}>\n<properties>'
    facts = {"verdict": row.verdict, "instance_type": row.instance_type, "instance_id": row.instance_id}
    for name, value in facts.items():
        if value:
            yield f'<property name="{name}" value="{attribute(value)}"/>'
    yield "</properties>\n"
    yield from _testcases(cases, row.findings, host)
    yield "</testsuite>\n"


def _fleet_suite(report: Report, cases: Cases) -> Iterator[str]:
    counts = _counts(_count(cases.values()))
    yield f'<testsuite name="{FLEET}" timestamp="{attribute(report.run.started_at)}"{counts}>\n'
    yield from _testcases(cases, report.fleet, FLEET)
    yield "</testsuite>\n"


def _testcases(cases: Cases, findings: Iterable[FindingDict], classname: str) -> Iterator[str]:
    said: dict[str, list[FindingDict]] = {}
    for finding in findings:
        said.setdefault(str(finding.get("check", "")), []).append(finding)
    for check, status in cases.items():
        head = f'<testcase classname="{classname}" name="{attribute(check)}"'
        if status is Status.PASS and check not in said:
            yield head + "/>\n"
        else:
            yield head + ">" + _outcome(status, said.get(check, [])) + "</testcase>\n"


def _outcome(status: Status, findings: list[FindingDict]) -> str:
    ordered = sorted(findings, key=lambda finding: -rank(finding.get("status"))) if len(findings) > 1 else findings
    worst: FindingDict = ordered[0] if ordered else {}
    message = attribute(worst.get("message") or _silent(status))
    if status is Status.SKIP:  # first: most hosts have many, and their details are not shown
        return f'<skipped message="{message}"/>'
    body = escape(_legal("\n".join(describe(finding) for finding in ordered)))
    if status is Status.FAIL:
        return f'<failure type="{attribute(worst.get("remedy", status))}" message="{message}">{body}</failure>'
    if status in (Status.UNKNOWN, Status.UNREACHABLE):
        return f'<error type="{status}" message="{message}">{body}</error>'
    return f"<system-out>{body}</system-out>" if body else ""


def _silent(status: Status) -> str:
    if status is Status.SKIP:
        return "skipped without a reason"
    return "no-go: nothing was found that could be judged" if status is Status.UNKNOWN else str(status)


def describe(finding: FindingDict) -> str:
    """Put a finding in plain lines: status, device, message, values, remedy, hosts of a fleet finding, evidence."""
    device = device_label(device_of(finding))
    unit = str(finding.get("unit") or "")
    head = f"{finding.get('status')}: " + (f"{device}: " if device else "") + str(finding.get("message", ""))
    lines: list[str] = [head]
    values: dict[str, Any] = {name: show_value(finding.get(name), unit) for name in ("measured", "expected")}
    lines += [f"  {name}: {value}" for name, value in values.items() if value]
    if finding.get("remedy") not in (None, "NONE"):
        lines.append(f"  remedy: {finding['remedy']}")
    hosts = hosts_of(finding)
    if hosts:
        lines.append("  hosts: " + ", ".join(hosts))
    return "\n".join(lines + [f"  | {line}" for line in evidence_of(finding)])
