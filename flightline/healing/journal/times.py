"""How long incidents take, phase by phase. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...cloud.signals import (
    DRAIN_PRECISION,
    HELD_NODES,
    OPEN_INCIDENTS,
    TIME_TO_DETECT,
    TIME_TO_QUARANTINE,
    TIME_TO_RETURN,
)
from .incident import Incident
from .machine import EventKind, NodeState
from .stamps import seconds

DETECT, QUARANTINE, RETURN = "seen to known", "detected to quarantined", "detected to returned"
PHASES: tuple[tuple[str, EventKind, EventKind | None], ...] = (
    (DETECT, EventKind.DETECTED, None),
    (QUARANTINE, EventKind.DETECTED, EventKind.QUARANTINED),
    ("quarantined to drained", EventKind.QUARANTINED, EventKind.DRAINED),
    ("drained to repaired", EventKind.DRAINED, EventKind.REPAIRED),
    ("repaired to verified", EventKind.REPAIRED, EventKind.VERIFIED),
    (RETURN, EventKind.DETECTED, EventKind.RETURNED),
)
"""Name, begin and end; None: when healing knew what a node, its scheduler or a preflight had seen."""
METRICS = {DETECT: TIME_TO_DETECT, QUARANTINE: TIME_TO_QUARANTINE, RETURN: TIME_TO_RETURN}


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
        ends = ((one.at(begin), one.at(end) if end else one.known_at) for one in listed)
        times = sorted(seconds(last) - seconds(first) for first, last in ends if first and last)
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


def numbers(found: Sequence[Incident]) -> list[tuple[str, float, str, str]]:
    """What an operator's graphs show: metric, value, CloudWatch's unit, percentile."""
    still = [one.state for one in found if one.is_open]
    counts = {OPEN_INCIDENTS: len(still), HELD_NODES: still.count(NodeState.HELD)}
    made = [(name, float(many), "Count", "") for name, many in counts.items()]
    share = precision(found).share
    made += [] if share is None else [(DRAIN_PRECISION, 100 * share, "Percent", "")]
    for one in took(found):
        if one.phase in METRICS:
            ranks = (("p50", one.p50_s), ("p90", one.p90_s), ("p99", one.p99_s))
            made += [(METRICS[one.phase], value, "Seconds", rank) for rank, value in ranks]
    return made


def _rank(times: Sequence[float], share: float) -> float:
    """The smallest value that at least that share is not above."""
    return times[max(-(-int(len(times) * share * 1000) // 1000), 1) - 1]
