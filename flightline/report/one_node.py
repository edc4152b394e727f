"""One node judged offline, on a page: verdict, root causes, what else blocks, what was not read, counts of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console

from flightline.fleet.result import FindingDict, NodeRow
from flightline_node.model import Status, Verdict, as_remedy, as_status
from flightline_node.read.accounting import ACCOUNTING, READ, BundleFile

from .node_lines import alike, said, steps
from .sheet import STYLES, Sheet
from .text import blocks, clean, count, rank

MOST_ROOTS, ROOT_LINES = 4, 2
MOST_ALSO = 4
MOST_WARNINGS = 2
MOST_CHECKS = 3
MOST_UNREAD, UNREAD_LINES = 4, 2
STEP_LINES = 3
"""Together with headings and blank lines no more than 40 lines."""

NOTHING = "nothing in the bundle could be judged"


class NodePage(Sheet):
    """What `flightline judge` says of a bundle. findings: of the row, all of them."""

    def __init__(self, row: NodeRow, about: Sequence[str], files: Sequence[BundleFile], console: Console) -> None:
        super().__init__(console)
        self.row = row
        self.about = about
        self.files = files
        self.causes = {id(trouble.root): trouble for trouble in row.troubles}
        self.explained = {id(one) for trouble in row.troubles for one in trouble.explained}

    def print(self) -> None:
        """Print the page."""
        self.banner()
        self._line(self._text(" | ".join(filter(None, self.about)), "dim"))
        self._roots()
        self._step()
        self._also()
        self._warnings()
        self._unread()
        self._counts()

    def banner(self) -> None:
        """The verdict and how much is behind it, on a line."""
        go = self.row.verdict is Verdict.GO
        blocking = sum(blocks(as_status(one["status"])) for one in self.row.findings)
        told = f"{count(len(self.causes), 'root cause')}, {count(blocking, 'blocking finding')}"
        why = "nothing blocks" if go else told if blocking else NOTHING
        self._one_line([self._verdict(self.row.verdict), self._text(" ")], f"{self.row.host}: {why}")

    def _roots(self) -> None:
        together = alike(trouble.root for trouble in self.row.troubles)
        if not together:
            return
        self._heading("Root causes")
        width = 4 + max(len(str(as_remedy(one["remedy"]))) for same in together for one in same)
        for same in together[:MOST_ROOTS]:
            follows = sum(len(self.causes[id(one)].explained) for one in same)
            more = f" (+{count(follows, 'finding')})" if follows else ""
            style = str(STYLES[as_status(same[0]["status"])])
            text = f"{same[0]['check']}: {said(same)}{more}"
            self._paragraph(f"  {as_remedy(same[0]['remedy'])}", text, width, style, ROOT_LINES)
        self._left_out(len(together) - MOST_ROOTS, "more root causes: --all")

    def _step(self) -> None:
        for step in steps([self.row]):
            self._heading("What to do")
            self._paragraph(f"  {step.remedy}", step.text, len(step.remedy) + 4, "bold", STEP_LINES)

    def _also(self) -> None:
        """What blocks and follows from a root; the roots themselves and the files stand elsewhere."""
        following = [one for one in self.row.findings if id(one) in self.explained and one["check"] != ACCOUNTING]
        spare = ROOT_LINES * max(MOST_ROOTS - len(self.causes), 0)
        self._list("Blocking, and explained by these", following, MOST_ALSO + spare, "more blocking findings: --all")

    def _warnings(self) -> None:
        found = [one for one in self.row.findings if as_status(one["status"]) is Status.WARN]
        self._list("Warnings (they do not block)", found, MOST_WARNINGS, "more warnings: --all")

    def _list(self, heading: str, findings: Sequence[FindingDict], most: int, more: str) -> None:
        """What has the same words, of whatever checks, is one line."""
        told: dict[tuple[Status, str, str], list[str]] = {}
        for same in sorted(alike(findings), key=lambda same: -rank(same[0]["status"])):
            key = (as_status(same[0]["status"]), str(as_remedy(same[0]["remedy"])), said(same))
            told.setdefault(key, []).append(str(same[0]["check"]))
        if not told:
            return
        self._heading(heading)
        width = max(len(remedy) for _, remedy, _ in told)
        for (status, remedy, text), checks in list(told.items())[:most]:
            others = f" and {len(checks) - MOST_CHECKS} more" if len(checks) > MOST_CHECKS else ""
            named = f"{', '.join(checks[:MOST_CHECKS])}{others}: {text}"
            self._one_line([self._text(f"  {remedy:<{width}}  ", STYLES[status])], named)
        self._left_out(sum(map(len, list(told.values())[most:])), more)

    def _unread(self) -> None:
        blocking = [one for one in self.files if one.blocks]
        rest = [one for one in self.files if one.state != READ and not one.blocks]
        if not blocking and not rest:
            return
        self._heading("Not read")
        lines = UNREAD_LINES if len(blocking) * UNREAD_LINES <= MOST_UNREAD else 1
        for one in blocking[:MOST_UNREAD]:
            self._paragraph("  UNKNOWN", f"{one.file}: {one.why}", 11, str(STYLES[Status.UNKNOWN]), lines)
        self._left_out(len(blocking) - MOST_UNREAD, "more files that block: --all")
        if rest:
            names = ", ".join(clean(one.file) for one in rest)
            self._one_line([self._text(f"  {len(rest)} more: ", "dim")], f"{names}")

    def _counts(self) -> None:
        found = Counter(as_status(one["status"]) for one in self.row.findings)
        wanted = (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.INFO, Status.PASS, Status.SKIP)
        findings = ", ".join(f"{found[status]} {status}" for status in wanted if found[status])
        read = sum(one.state == READ for one in self.files)
        self._line()
        self._line(
            self._text(f"{findings}; {read} of {count(len(self.files), 'file')} read (--all: each of them)", "dim")
        )
