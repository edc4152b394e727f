"""How long incidents take, phase by phase. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .incident import Incident
from .machine import EventKind
from .stamps import seconds

PHASES: tuple[tuple[str, EventKind, EventKind], ...] = (
    ("detected to quarantined", EventKind.DETECTED, EventKind.QUARANTINED),
    ("quarantined to drained", EventKind.QUARANTINED, EventKind.DRAINED),
    ("drained to repaired", EventKind.DRAINED, EventKind.REPAIRED),
    ("repaired to verified", EventKind.REPAIRED, EventKind.VERIFIED),
    ("detected to returned", EventKind.DETECTED, EventKind.RETURNED),
)


@dataclass(frozen=True)
class Took:
    """One phase over some incidents, in seconds. p50, p90, p99: nearest rank."""

    phase: str
    count: int
    mean_s: float
    p50_s: float
    p90_s: float
    p99_s: float


def took(found: Iterable[Incident]) -> list[Took]:
    """Mean and percentiles of each phase; a phase that no incident has been through is left out."""
    listed = list(found)
    made = []
    for name, begin, end in PHASES:
        times = sorted(seconds(one.at(end)) - seconds(one.at(begin)) for one in listed if one.at(begin) and one.at(end))
        if times:
            ranks = (_rank(times, share) for share in (0.5, 0.9, 0.99))
            made.append(Took(name, len(times), sum(times) / len(times), *ranks))
    return made


@dataclass(frozen=True)
class Precision:
    """Of the nodes that were taken out: sick by a second look, sound at the first one, or not known yet.

    sick: a preflight said no-go, a step was taken, or a person held it. sound: its first proof came without a step, or
    a person put it back. share: sick of sick and sound; None for neither.
    """

    taken_out: int
    sick: int
    sound: int

    @property
    def share(self) -> float | None:
        """What people call the precision of drains."""
        judged = self.sick + self.sound
        return self.sick / judged if judged else None


def precision(found: Iterable[Incident]) -> Precision:
    """How many quarantines were right, as far as is known. Pure."""
    out = [one for one in found if one.at(EventKind.QUARANTINED)]
    sick = [one for one in out if one.attempts or one.at(EventKind.FAILED) or one.at(EventKind.HELD)]
    sound = [one for one in out if one not in sick and (one.at(EventKind.VERIFIED) or one.at(EventKind.LEFT))]
    return Precision(len(out), len(sick), len(sound))


def _rank(times: Sequence[float], share: float) -> float:
    """The smallest value that at least that share is not above."""
    return times[max(-(-int(len(times) * share * 1000) // 1000), 1) - 1]
