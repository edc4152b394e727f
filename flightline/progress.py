"""Show a run as it goes: a live line on a terminal, a line per host elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from .preflight import Answer, Watcher
from .report.text import clean, count

MOST_REASONS = 2
"""Per host while it runs; the summary has them all."""


@contextmanager
def watching(console: Console) -> Iterator[Watcher]:
    """The watcher that suits the console."""
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[done]}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Live(progress)


class _Tally:
    """Hosts that ended so far."""

    def __init__(self) -> None:
        self.hosts = self.go = self.no_go = 0

    def count(self, answer: Answer) -> None:
        self.go += answer.go
        self.no_go += not answer.go

    def begin(self, host: str) -> None:
        """Nothing is shown of a host that is asked."""

    @property
    def ended(self) -> int:
        return self.go + self.no_go


class _Lines(_Tally):
    def __init__(self, console: Console) -> None:
        super().__init__()
        self.console = console

    def expect(self, hosts: Sequence[str], ends_at: float | None) -> None:
        self.hosts = len(hosts)
        self.console.print(Text(count(len(hosts), "host")))

    def answer(self, answer: Answer) -> None:
        self.count(answer)
        self.console.print(Text(f"[{self.ended}/{self.hosts}] {_line(answer)}"), soft_wrap=True)


class _Live(_Tally):
    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self.progress = progress
        self.task: TaskID = progress.add_task("reading the inventory", total=None, done="")

    def expect(self, hosts: Sequence[str], ends_at: float | None) -> None:
        self.hosts = len(hosts)
        self._update()

    def answer(self, answer: Answer) -> None:
        self.count(answer)
        if not answer.go:
            self.progress.console.print(Text(_line(answer), style="red"))
        self._update()

    def _update(self) -> None:
        done = f"{self.ended}/{self.hosts} hosts, {self.go} go, {self.no_go} no-go"
        self.progress.update(self.task, description="judging", total=self.hosts, completed=self.ended, done=done)


def _line(answer: Answer) -> str:
    if answer.go:
        return f"{answer.host} go, {answer.seconds:.1f} s" + (" (warnings)" if answer.status == "WARN" else "")
    more = len(answer.why) - MOST_REASONS
    reasons = "; ".join(clean(reason) for reason in answer.why[:MOST_REASONS])
    return f"{answer.host} no-go: {reasons}" + (f"; and {more} more" if more > 0 else "")
