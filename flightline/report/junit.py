"""junit.xml for continuous integration: what blocks, as a suite per no-go host and a case per check.

FAIL is a failure, UNKNOWN and UNREACHABLE are errors. What passed is counted in the properties and not listed: ten
thousand nodes have a million cases that nobody opens. The last suite, of the fleet, always has the case "verdict", so
that no reader of this file sees green where the verdict is red, or an empty file where it is go.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import IO, Any
from xml.sax.saxutils import escape

from flightline.fleet.causes import EXPLAINED
from flightline.fleet.result import FindingDict, NodeRow, Report
from flightline_node.model import Status, Verdict, as_status

from ..record.printable import clip
from .text import MAX_TEXT_CHARS, blocks, device_label, device_of, evidence_of, hosts_of, rank, show_value

FLEET = "fleet"
VERDICT = "verdict"
Cases = dict[str, Status]
Totals = tuple[int, int, int]  # tests, failures, errors

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_QUOTED = {'"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}


def write(report: Report, stream: IO[str]) -> None:
    """Write the whole document; suites are streamed, the totals are counted first."""
    bad = [(row, _cases(row)) for row in report.rows if row.verdict is Verdict.NO_GO]
    fleet = _fleet_cases(report)
    totals = _sum([*(_count(cases) for _, cases in bad), _count(fleet)])
    stream.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    stream.write(f'<testsuites name="{attribute("flightline " + report.run.id)}"{_counts(totals)}>\n')
    for row, cases in bad:
        stream.write("".join(_suite(row, cases, report)))
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
    """Check id -> worst status of a host's checks that block, from its cells and its findings together."""
    cases: Cases = {check: status for check, status in row.cells.items() if blocks(status)}
    for finding in row.findings:
        _worse(cases, finding)
    return cases or {VERDICT: Status.UNKNOWN}


def _worse(cases: Cases, finding: FindingDict) -> None:
    check, status = str(finding.get("check", "")), as_status(finding.get("status"))
    if blocks(status) and (check not in cases or rank(status) > rank(cases[check])):
        cases[check] = status


def _fleet_cases(report: Report) -> Cases:
    cases: Cases = {}
    for finding in report.fleet:
        _worse(cases, finding)
    return {**cases, VERDICT: Status.PASS if report.verdict is Verdict.GO else Status.FAIL}


def _count(cases: Cases) -> Totals:
    seen = list(cases.values())
    return len(seen), seen.count(Status.FAIL), seen.count(Status.UNKNOWN) + seen.count(Status.UNREACHABLE)


def _sum(parts: Iterable[Totals]) -> Totals:
    tests, failures, errors = (sum(column) for column in zip(*parts, strict=True))
    return tests, failures, errors


def _counts(totals: Totals) -> str:
    tests, failures, errors = totals
    return f' tests="{tests}" failures="{failures}" errors="{errors}" skipped="0"'


def _properties(facts: Mapping[str, object]) -> Iterator[str]:
    yield "<properties>"
    for name, value in facts.items():
        if value not in ("", None):
            yield f'<property name="{name}" value="{attribute(value)}"/>'
    yield "</properties>\n"


def _suite(row: NodeRow, cases: Cases, report: Report) -> Iterator[str]:
    host = attribute(row.host)
    yield f'<testsuite name="{host}" hostname="{host}" timestamp="{attribute(report.run.started_at)}"'
    yield f' time="{row.seconds:.3f}"{_counts(_count(cases))}>\n'
    facts = {"verdict": row.verdict, "instance_type": row.instance_type, "instance_id": row.instance_id}
    yield from _properties({**facts, **_named(Counter(row.cells.values()))})
    yield from _testcases(cases, row.findings, host)
    yield "</testsuite>\n"


def _fleet_suite(report: Report, cases: Cases) -> Iterator[str]:
    yield f'<testsuite name="{FLEET}" timestamp="{attribute(report.run.started_at)}"{_counts(_count(cases))}>\n'
    everything = Counter(status for row in report.rows for status in row.cells.values())
    yield from _properties({"verdict": report.verdict, **report.counts, **_named(everything)})
    counts = report.counts
    said = f"{report.verdict}: {counts['go']} of {counts['nodes']} nodes go, {counts['no_go']} no-go"
    verdict = {"check": VERDICT, "status": str(cases[VERDICT]), "message": said}
    yield from _testcases(cases, [*report.fleet, verdict], FLEET)
    yield "</testsuite>\n"


def _named(seen: Mapping[Status, int]) -> dict[str, int]:
    """How many checks ended how: 'checks_pass', 'checks_skip'."""
    return {f"checks_{str(status).lower()}": seen[status] for status in Status if seen.get(status)}


def _testcases(cases: Cases, findings: Iterable[FindingDict], classname: str) -> Iterator[str]:
    said: dict[str, list[FindingDict]] = {}
    for finding in findings:
        said.setdefault(str(finding.get("check", "")), []).append(finding)
    for check, status in cases.items():
        head = f'<testcase classname="{classname}" name="{attribute(check)}"'
        if status is Status.PASS:
            yield head + "/>\n"
        else:
            yield head + ">" + _outcome(status, said.get(check, [])) + "</testcase>\n"


def _outcome(status: Status, findings: list[FindingDict]) -> str:
    ordered = sorted(findings, key=lambda finding: -rank(finding.get("status"))) if len(findings) > 1 else findings
    worst: FindingDict = ordered[0] if ordered else {}
    message = attribute(clip(str(worst.get("message") or _silent(status)), MAX_TEXT_CHARS))
    body = escape(_legal("\n".join(describe(finding) for finding in ordered)))
    if status is Status.FAIL:
        return f'<failure type="{attribute(worst.get("remedy", status))}" message="{message}">{body}</failure>'
    return f'<error type="{status}" message="{message}">{body}</error>'


def _silent(status: Status) -> str:
    return "no-go: nothing was found that could be judged" if status is Status.UNKNOWN else str(status)


def describe(finding: FindingDict) -> str:
    """Put a finding in plain lines: status, device, message, values, remedy, hosts of a fleet finding, evidence."""
    device = device_label(device_of(finding))
    unit = str(finding.get("unit") or "")
    said = clip(str(finding.get("message", "")), MAX_TEXT_CHARS)
    lines = [f"{finding.get('status')}: {f'{device}: ' if device else ''}{said}"]
    values: dict[str, Any] = {name: show_value(finding.get(name), unit) for name in ("measured", "expected")}
    lines += [f"  {name}: {value}" for name, value in values.items() if value]
    if finding.get("remedy") not in (None, "NONE"):
        lines.append(f"  remedy: {finding['remedy']}")
    explained = finding.get(EXPLAINED) or {}
    if explained:
        lines.append(f"  explained by: {explained['check']}: {explained['message']}")
    hosts = hosts_of(finding)
    if hosts:
        lines.append("  hosts: " + ", ".join(hosts))
    return "\n".join(lines + [f"  | {line}" for line in evidence_of(finding)])
