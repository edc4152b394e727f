"""The summary a preflight ends with: verdict, a line for each no-go node, what to do, what to copy, where to look."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console

from flightline.fleet.result import FindingDict, Report, TroubleGroup
from flightline_node.model import Status, Verdict, as_remedy, as_status

from .copies import copies
from .node_lines import NodeLine, RemedyStep, lines, steps, where
from .notes import verdict_notes
from .sheet import LABEL_WIDTH, STYLES, Sheet
from .text import (
    blocks,
    clean,
    count,
    covered,
    device_label,
    device_of,
    duration,
    host_ranges,
    hosts_of,
    no_go_parts,
    places,
    rank,
    short_list,
)

MOST_LINES = 60
MOST_FLEET = 10
MOST_WARNINGS = 5
MOST_STEPS = 12
MOST_COPY_CHARS = 600
"""A command to copy that is longer stays in the HTML report."""

MOST_HOST_WIDTH = 28


def print_summary(report: Report, console: Console, links: Mapping[str, Path], store: str | None = "") -> None:
    """Print the summary of a run.

    links: name of each report file -> its path. store: what the commands that look back need to find the run's store;
    None when it is in none. Text that came from nodes is printed as text only: no
    markup, no escape sequence, and what the console's encoding lacks is replaced.
    """
    _Summary(report, console).print(links, store)


class _Summary(Sheet):
    def __init__(self, report: Report, console: Console) -> None:
        super().__init__(console)
        self.report = report

    def print(self, links: Mapping[str, Path], store: str | None) -> None:
        found = lines(self.report.rows)
        self._banner()
        self._run()
        self._nodes(found)
        self._fleet()
        self._steps()
        self._warnings()
        self._copies(links)
        self._end(links, store)
        if len(found) > self.console.height:
            self._line()
            self._banner()

    def _banner(self) -> None:
        counts = self.report.counts
        parts = no_go_parts(self.report.rows)
        self._line(
            self._verdict(self.report.verdict),
            self._text(f" {counts['go']:,} of {count(counts['nodes'], 'node')} go, "),
            self._text(f"{counts['no_go']:,} no-go", "bold red" if counts["no_go"] else ""),
            self._text(f" (of these {parts})" if parts else "", "bold red"),
        )

    def _run(self) -> None:
        run = self.report.run
        took = duration(run.started_at, run.finished_at)
        facts = [f"run {run.id}", f"level {run.level}", run.inventory, took]
        self._line(self._text(" | ".join(fact for fact in facts if fact), "dim"))
        for reason in verdict_notes(self.report):
            self._paragraph("", reason, 0)

    def _nodes(self, found: list[NodeLine]) -> None:
        if not found:
            return
        alone = all(len(line.hosts) == 1 for line in found)
        self._heading("No-go nodes" if alone else "No-go nodes, by what is wrong")
        names = [self._name(line) for line in found]
        width = min(max(cell_len(name) for name in names), MOST_HOST_WIDTH)
        verbs = max(len(line.remedy) for line in found)
        for name, line in list(zip(names, found, strict=True))[:MOST_LINES]:
            head = [
                self._text(f"  {_fit(name, width)}  ", "bold"),
                self._text(f"{line.remedy:<{verbs}}  ", STYLES[line.status]),
            ]
            self._one_line(head, line.text, line.tail)
            if len(line.hosts) > 1:
                self._one_line([self._text(" " * (width + verbs + 6))], where(line), style="dim")
        self._left_out(sum(len(line.hosts) for line in found[MOST_LINES:]), "more nodes, all in the report")

    def _name(self, line: NodeLine) -> str:
        return self._text(line.hosts[0]).plain if len(line.hosts) == 1 else count(len(line.hosts), "node")

    def _fleet(self) -> None:
        """What blocks and no node carries: the nodes' own lines say the rest."""
        carried = {(row.host, finding["check"]) for row in self.report.rows for finding in row.findings}
        findings = [finding for finding in self.report.fleet if blocks(as_status(finding.get("status")))]
        shown = [one for one in findings if not _carried(one, carried)]
        if not shown:
            return
        self._heading("The fleet as a whole")
        for finding in sorted(shown, key=lambda one: -rank(one.get("status")))[:MOST_FLEET]:
            self._finding(finding)
        self._left_out(len(shown) - MOST_FLEET, "more findings about the fleet, all in the report")

    def _finding(self, finding: FindingDict) -> None:
        hosts, status = short_list(host_ranges(hosts_of(finding)), 4), as_status(finding.get("status"))
        text = prefixed(device_label(device_of(finding)), str(finding.get("message", "")))
        self._line(
            self._text(f"  {status} ", STYLES[status]),
            self._text(f"{finding.get('check', '')} "),
            self._text(f"{as_remedy(finding.get('remedy', 'NONE'))}", "bold"),
        )
        self._paragraph("", text + (f" ({hosts})" if hosts else ""), 4)

    def _steps(self) -> None:
        found = steps(self.report.rows)
        if not found:
            return
        self._heading("What to do")
        width = max(len(step.remedy) for step in found) + 4
        for step in found[:MOST_STEPS]:
            self._paragraph(f"  {step.remedy}", _step(step), width, "bold")
        self._left_out(len(found) - MOST_STEPS, "more remedies, all in the report")

    def _warnings(self) -> None:
        groups = [group for group in self.report.groups if group.status is Status.WARN]
        groups = [group for group in groups if not covered(group, self.report.fleet)]
        about_all = [one for one in self.report.fleet if as_status(one.get("status")) is Status.WARN]
        if not groups and not about_all:
            return
        self._heading("Warnings (they do not block)")
        shown = [_warning(group) for group in groups]
        shown += [(str(one.get("check", "")), str(one.get("message", "")), "") for one in about_all]
        for check, message, hosts in shown[:MOST_WARNINGS]:
            self._one_line([self._text(f"  {check}: ", "yellow")], message, hosts)
        self._left_out(len(shown) - MOST_WARNINGS, "more warnings, all in the report")

    def _copies(self, links: Mapping[str, Path]) -> None:
        """Commands to copy: each whole on its line, for a line break would be copied with it."""
        found = copies(self.report)
        if not found:
            return
        self._heading("To copy")
        listed = links.get("hosts")
        for label, text in (("limit", found.limit), ("drain", found.drain), ("hosts", found.hosts)):
            by_file = f"--limit {shlex.quote(f'@{listed}')}" if listed and label == "limit" else ""
            short = by_file or "too long here: see the report"
            if text:
                self._whole(f"  {label}", text if len(text) <= MOST_COPY_CHARS else short)
        if found.unnamed:
            left = f"{count(found.unnamed, 'host')} left out: their names are not safe in a command"
            self._line(self._text(" " * (LABEL_WIDTH + 1)), self._text(left, "yellow"))

    def _end(self, links: Mapping[str, Path], store: str | None) -> None:
        self._line()
        ends = [(name, str(path)) for name, path in links.items()]
        bad = next((row.host for row in self.report.rows if row.verdict is Verdict.NO_GO), None)
        run = shlex.quote(clean(self.report.run.id))
        if store is not None:
            ends.append(("again", f"flightline report {run}{store}"))
        if store is not None and bad is not None:
            ends.append(("retry", f"flightline preflight --only-failed-of {run}{store}"))
            ends.append(("history", f"flightline history {shlex.quote(clean(bad))}{store}"))
        for name, text in ends:
            self._whole(name, text)


def _fit(name: str, width: int) -> str:
    """A name in its column; of one that is too long the end, which tells nodes apart."""
    cells = cell_len(name)
    if cells <= width:
        return name + " " * (width - cells)
    while cell_len(name) > width - 3:
        name = name[1:]
    return "..." + name + " " * (width - 3 - cell_len(name))


def _carried(finding: FindingDict, carried: set[tuple[str, str]]) -> bool:
    hosts = hosts_of(finding)
    return bool(hosts) and all((host, str(finding.get("check"))) in carried for host in hosts)


def _step(step: RemedyStep) -> str:
    """The words; where they are a check's own, with its name."""
    return f"{', '.join(step.checks[:3])}: {step.text}" if step.own else step.text


def _warning(group: TroubleGroup) -> tuple[str, str, str]:
    return group.check, group.message, f" ({places(group.where, group.unit, most=2)})"


def prefixed(prefix: str, text: str) -> str:
    """'GPU 3: message'; the text alone when there is no prefix or the text names it already."""
    return f"{prefix}: {text}" if prefix and text and prefix not in text else text
