"""What a run says of itself while it goes: a line of JSON each, in a file of the run's own workplace.

Not the events of ansible-runner: a result above 700,000 characters is left out of them, as if it were empty
(MAX_EVENT_RES in its display_callback/callback/awx_display.py), and a node's bundle or a large fleet's hosts are more.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flightline_node.model import Status

from ..fleet.causes import troubles
from ..record.intake import is_go
from ..store.sqlite import Record, worst_of

LIVE_ENV = "FLIGHTLINE_LIVE"
"""The file; set by who follows the run."""
VALIDATED, REFUSED, BEGUN, ANSWERED = "validated", "refused", "begun", "answered"


@dataclass(frozen=True)
class HostOutcome:
    """One host as it ends. why: the root causes of what blocks it, most urgent first."""

    host: str
    go: bool
    status: Status
    seconds: float
    why: list[str]


class RunObserver:
    """Who is told how the run goes; this one does not listen."""

    def expect(self, hosts: Sequence[str], ends_at: float | None) -> None:
        """The inventory is in order and has these hosts.

        ends_at: time.time() at which the run has ended at the latest; None when it has no deadline.
        """

    def begin(self, host: str) -> None:
        """A host is asked now."""

    def answer(self, answer: HostOutcome) -> None:
        """A host ended."""


def answer_of(record: Record) -> HostOutcome:
    """What is told of a host while the run goes."""
    return HostOutcome(
        record["host"],
        is_go(record),
        worst_of(record),
        float(record.get("seconds") or 0),
        [trouble.said for trouble in troubles(record.get("findings", []))],
    )


def say(kind: str, what: Any) -> None:
    """Tell who follows the run, if anybody does. A line that cannot be written is not shown, and costs nothing else."""
    path = os.environ.get(LIVE_ENV)
    if path:
        with suppress(OSError), Path(path).open("ab") as stream:
            stream.write(f"{json.dumps([kind, what], default=str)}\n".encode())


def answered(record: Mapping[str, Any]) -> None:
    """Tell of a row that was kept."""
    if os.environ.get(LIVE_ENV):
        say(ANSWERED, vars(answer_of(dict(record))))


@dataclass
class LiveLines:
    """The lines of a run as they come."""

    path: Path
    read: int = 0

    def new(self) -> Iterator[tuple[str, Any]]:
        """What was said since the last look. Raises ValueError for a line that is none of ours, once."""
        with suppress(FileNotFoundError), self.path.open("rb") as stream:
            stream.seek(self.read)
            for line in stream:
                if not line.endswith(b"\n"):
                    return
                self.read += len(line)
                kind, what = json.loads(line)
                yield kind, what


def outcome_in(what: Mapping[str, Any]) -> HostOutcome:
    """The outcome that a line holds."""
    return HostOutcome(**{**what, "status": Status(what["status"])})
