"""The summary a preflight ends with: verdict, what is wrong where, what to do, where to look."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from flightline.result import FindingDict, Group, Report
from flightline_node.model import Remedy, Status, Verdict, as_status

from .scope import left_out, set_aside
from .text import (
    REMEDY_TITLES,
    as_remedy,
    blocks,
    clean,
    compare,
    compare_group,
    count,
    covered,
    device_label,
    device_of,
    duration,
    example,
    host_ranges,
    hosts_of,
    places,
    rank,
    remedy_texts,
    short_list,
)

MOST_GROUPS = 25
MOST_WARNINGS = 10
LABEL_WIDTH = 10

STYLES: Mapping[Status, str] = {
    Status.FAIL: "bold red",
    Status.UNREACHABLE: "bold red",
    Status.UNKNOWN: "bold magenta",
    Status.WARN: "yellow",
    Status.INFO: "cyan",
    Status.PASS: "green",
    Status.SKIP: "dim",
}
Fields = list[tuple[str, str]]


def print_summary(report: Report, console: Console, links: Mapping[str, Path], store: str | None = "") -> None:
    """Print the summary of a run.

    links: name of each report file -> its path. store: what the commands that look back need to find the run's store;
    None when it is in none. Text that came from nodes is printed as text only: no
    markup, no escape sequence, and what the console's encoding lacks is replaced.
    """
    _Summary(report, console).print(links, store)


class _Summary:
    def __init__(self, report: Report, console: Console) -> None:
        self.report = report
        self.console = console

    def print(self, links: Mapping[str, Path], store: str | None) -> None:
        groups = sorted(self.report.groups, key=lambda group: -rank(group.status))
        groups = [group for group in groups if not covered(group, self.report.fleet)]
        blocking = [group for group in groups if blocks(group.status)]
        warnings = [group for group in groups if group.status is Status.WARN]
        self._banner()
        self._run()
        for group in blocking[:MOST_GROUPS]:
            self._group(group)
        self._left_out(len(blocking) - MOST_GROUPS, "more kinds of trouble")
        self._fleet()
        self._warnings(warnings)
        self._to_do(blocking)
        self._end(links, store)
        if len(blocking) > 3:
            self._line()
            self._banner()

    def _text(self, text: object, style: str = "") -> Text:
        """Text that cannot steer the terminal and that the console can encode."""
        encoding = self.console.encoding or "utf-8"
        safe = clean(text).encode(encoding, "replace").decode(encoding, "replace")
        return Text(safe, style=style, overflow="fold")

    def _line(self, *parts: Text) -> None:
        self.console.print(Text.assemble(*parts, overflow="fold") if parts else Text(""), highlight=False)

    def _fields(self, fields: Fields) -> None:
        room = max(self.console.width - LABEL_WIDTH - 1, 20)
        for label, value in fields:
            for number, line in enumerate(self._text(value).wrap(self.console, room) if value else ()):
                line.rstrip()
                self._line(self._text(f"{'  ' + label if number == 0 else '':<{LABEL_WIDTH}} ", "dim"), line)

    def _banner(self) -> None:
        counts = self.report.counts
        go = self.report.verdict is Verdict.GO
        dot = self._text(" \N{MIDDLE DOT} ") if self._can_encode("\N{MIDDLE DOT}") else self._text(", ")
        self._line(
            self._text(f" {str(self.report.verdict).upper()} ", "bold white on green" if go else "bold white on red"),
            self._text(f" {counts['go']:,} of {count(counts['nodes'], 'node')} go"),
            dot,
            self._text(f"{counts['no_go']:,} no-go", "bold red" if counts["no_go"] else ""),
            dot,
            self._text(f"{counts['unreachable']:,} unreachable", "bold red" if counts["unreachable"] else ""),
        )

    def _can_encode(self, text: str) -> bool:
        try:
            text.encode(self.console.encoding or "utf-8")
        except (UnicodeEncodeError, LookupError):
            return False
        return True

    def _run(self) -> None:
        run = self.report.run
        took = duration(run.started_at, run.finished_at)
        facts = [f"run {run.id}", f"level {run.level}", run.inventory, took]
        self._line(self._text(" | ".join(fact for fact in facts if fact), "dim"))
        for reason in verdict_notes(self.report):
            for line in self._text(reason, "bold").wrap(self.console, self.console.width):
                line.rstrip()
                self._line(line)

    def _head(self, status: Status, check: str, title: str, hosts: int) -> None:
        self._line()
        self._line(
            self._text(status, STYLES[status]),
            self._text(" "),
            self._text(check, "bold"),
            self._text(f": {title}" if title and title != check else ""),
            self._text(f" ({count(hosts, 'host')})" if hosts else ""),
        )

    def _group(self, group: Group) -> None:
        self._head(group.status, group.check, group.title, len(group.hosts))
        self._fields(
            [
                ("e.g." if example(group) else "saw", group.message),
                ("measured", compare_group(group.where, group.expected, group.unit)),
                ("where", places(group.where, group.unit)),
                ("do", remedy_line(group.remedy, group.remedy_text)),
            ]
        )

    def _fleet(self) -> None:
        findings = sorted(self.report.fleet, key=lambda finding: -rank(finding.get("status")))
        texts = remedy_texts(self.report.groups, self.report.fleet)
        shown = [finding for finding in findings if rank(finding.get("status")) >= rank(Status.WARN)]
        if not shown:
            return
        self._line()
        self._line(self._text("The fleet as a whole", "bold underline"))
        for finding in shown[:MOST_GROUPS]:
            self._fleet_finding(finding, texts)
        self._left_out(len(shown) - MOST_GROUPS, "more findings about the fleet")

    def _fleet_finding(self, finding: FindingDict, texts: Mapping[tuple[str, str], str]) -> None:
        hosts, remedy = hosts_of(finding), as_remedy(finding.get("remedy", "NONE"))
        check = str(finding.get("check", ""))
        unit = str(finding.get("unit") or "")
        self._head(as_status(finding.get("status")), check, "", len(set(hosts)))
        self._fields(
            [
                ("saw", prefixed(device_label(device_of(finding)), str(finding.get("message", "")))),
                ("measured", compare(finding.get("measured"), finding.get("expected"), unit)),
                ("where", short_list(host_ranges(hosts))),
                ("do", remedy_line(remedy, texts.get((check, str(remedy)), ""))),
            ]
        )

    def _warnings(self, groups: Sequence[Group]) -> None:
        if not groups:
            return
        self._line()
        self._line(self._text("Warnings (they do not block)", "bold underline"))
        for group in groups[:MOST_WARNINGS]:
            self._line(
                self._text(group.status, STYLES[Status.WARN]),
                self._text(f" {group.check}: ", "bold"),
                self._text(f"{group.message}"),
            )
            self._fields([("where", places(group.where, group.unit, most=4))])
        self._left_out(len(groups) - MOST_WARNINGS, "more warnings")

    def _left_out(self, number: int, what: str) -> None:
        if number > 0:
            self._line()
            self._line(self._text(f"+{number:,} {what}, all in the report", "dim"))

    def _to_do(self, blocking: Sequence[Group]) -> None:
        """Each no-go host once, under the remedy that makes its others needless."""
        fields = [(str(remedy), places) for remedy, places in _by_remedy(blocking, self.report.fleet)]
        if not fields:
            return
        self._line()
        self._line(self._text("What to do now", "bold"))
        for remedy, hosts in fields:
            self._fields([("", f"{remedy}: {short_list(host_ranges(hosts))}")])

    def _end(self, links: Mapping[str, Path], store: str | None) -> None:
        """Paths and commands last, each whole on its line, because they are there to be copied."""
        self._line()
        ends = [(name, str(path)) for name, path in links.items()]
        bad = next((row.host for row in self.report.rows if row.verdict is Verdict.NO_GO), None)
        if store is not None:
            ends.append(("again", f"flightline report {shlex.quote(clean(self.report.run.id))}{store}"))
        if store is not None and bad is not None:
            ends.append(("history", f"flightline history {shlex.quote(clean(bad))}{store}"))
        for name, text in ends:
            line = Text.assemble(self._text(f"{name:<{LABEL_WIDTH}} ", "dim"), self._text(text))
            self.console.print(line, highlight=False, soft_wrap=True)


def _by_remedy(blocking: Iterable[Group], fleet: Iterable[FindingDict]) -> Iterator[tuple[Remedy, list[str]]]:
    asked = [(group.remedy, group.hosts) for group in blocking]
    asked += [
        (as_remedy(finding.get("remedy", "NONE")), hosts_of(finding))
        for finding in fleet
        if blocks(as_status(finding.get("status")))
    ]
    listed: set[str] = set()
    for remedy in REMEDY_TITLES:
        hosts = list(dict.fromkeys(host for wanted, names in asked if wanted is remedy for host in names))
        hosts = [host for host in hosts if host not in listed]
        listed.update(hosts)
        if hosts:
            yield remedy, hosts


def verdict_notes(report: Report) -> list[str]:
    """Plain sentences about a verdict that the counts alone do not explain."""
    notes: list[str] = []
    if not report.run.finished_at:
        notes.append("The run did not finish: this is what was measured until now.")
    notes += [*left_out(report), *set_aside(report)]
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


def prefixed(prefix: str, text: str) -> str:
    """'GPU 3: message'; the text alone when there is no prefix or the text names it already."""
    return f"{prefix}: {text}" if prefix and text and prefix not in text else text


def remedy_line(remedy: Remedy, text: str) -> str:
    """'REBOOT: Reboot once, then ...', or the one of the two there is."""
    if remedy is Remedy.NONE:
        return text
    return f"{remedy}: {text}" if text else str(remedy)
