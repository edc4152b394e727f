"""Show a run as it goes: a live line on a terminal, a line per host elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone

from rich.console import Console
from rich.progress import Progress, ProgressColumn, Task
from rich.text import Text

from ..record.printable import clip
from ..report.text import clean, count, spell
from .live import HostOutcome
from .preflight import RunObserver

MOST_REASONS = 2
"""Per host while it runs; the summary has them all."""

MOST_NAME_CHARS = 30
REFRESH_PER_S = 4


@contextmanager
def watching(console: Console) -> Iterator[RunObserver]:
    """The watcher that suits the console."""
    if not console.is_terminal:
        yield _PlainLines(console)
        return
    tally = Tally()
    column = _Column(tally)
    with Progress(column, console=console, transient=True, refresh_per_second=REFRESH_PER_S) as progress:
        progress.add_task("", total=None)
        yield _Live(progress, tally)


class Tally:
    """Who is expected, asked and done; told by whoever follows the run, read by the thread that draws."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.hosts = self.go = self.no_go = 0
        self.ends_at: float | None = None
        self._begun: dict[str, float] = {}
        self._lock = threading.Lock()

    def expect(self, hosts: int, ends_at: float | None) -> None:
        """So many hosts, and when the run has ended at the latest (as time.time())."""
        self.hosts, self.ends_at = hosts, ends_at

    def begin(self, host: str) -> None:
        """A host is asked now."""
        with self._lock:
            self._begun.setdefault(host, self.clock())

    def count(self, answer: HostOutcome) -> None:
        """A host ended."""
        with self._lock:
            self._begun.pop(answer.host, None)
            self.go += answer.go
            self.no_go += not answer.go

    @property
    def ended(self) -> int:
        """Hosts that ended."""
        return self.go + self.no_go

    def line(self) -> str:
        """'481/500 hosts, 9 no-go; waiting for gpu-017 (41 s) and 12 more, 6 min 20 s left'."""
        if not self.hosts:
            return "reading the inventory"
        said = f"{self.ended:,}/{self.hosts:,} hosts, {self.no_go:,} no-go"
        return "".join((said, self._awaited(), self.left()))

    def _awaited(self) -> str:
        with self._lock:
            begun = list(self._begun.items())
        if not begun:
            return ""
        host, since = min(begun, key=lambda item: item[1])
        rest = self.hosts - self.ended - 1
        more = f" and {rest:,} more" if rest > 0 else ""
        name = clip(clean(host), MOST_NAME_CHARS)
        return f"; waiting for {name} ({spell(max(self.clock() - since, 0))}){more}"

    def left(self) -> str:
        """The time until the run has ended at the latest; "" when it has no deadline."""
        if self.ends_at is None:
            return ""
        seconds = self.ends_at - self.clock()
        return f", {spell(seconds)} left" if seconds >= 0 else ", past its end: concluding"


class _Column(ProgressColumn):
    def __init__(self, tally: Tally) -> None:
        super().__init__()
        self.tally = tally

    def render(self, task: Task) -> Text:
        return Text(self.tally.line(), no_wrap=True, overflow="ellipsis")


class _PlainLines:
    def __init__(self, console: Console) -> None:
        self.console = console
        self.tally = Tally()

    def expect(self, hosts: Sequence[str], ends_at: float | None) -> None:
        self.tally.expect(len(hosts), ends_at)
        self.console.print(Text(count(len(hosts), "host") + _until(ends_at)))

    def begin(self, host: str) -> None:
        self.tally.begin(host)

    def answer(self, answer: HostOutcome) -> None:
        self.tally.count(answer)
        self.console.print(Text(f"[{self.tally.ended}/{self.tally.hosts}] {_line(answer)}"), soft_wrap=True)


class _Live:
    def __init__(self, progress: Progress, tally: Tally) -> None:
        self.progress = progress
        self.tally = tally

    def expect(self, hosts: Sequence[str], ends_at: float | None) -> None:
        self.tally.expect(len(hosts), ends_at)

    def begin(self, host: str) -> None:
        self.tally.begin(host)

    def answer(self, answer: HostOutcome) -> None:
        self.tally.count(answer)
        if not answer.go:
            self.progress.console.print(Text(_line(answer), style="red"))


def _until(ends_at: float | None) -> str:
    if ends_at is None:
        return ""
    return f", judged by {datetime.fromtimestamp(ends_at, timezone.utc):%H:%M:%S} UTC at the latest"


def _line(answer: HostOutcome) -> str:
    host = clean(answer.host)
    if answer.go:
        return f"{host} go, {answer.seconds:.1f} s" + (" (warnings)" if answer.status == "WARN" else "")
    more = len(answer.why) - MOST_REASONS
    reasons = "; ".join(clean(reason) for reason in answer.why[:MOST_REASONS])
    return f"{host} no-go: {reasons}" + (f"; and {more} more" if more > 0 else "")
