"""Which rank is slower than the others at its own work, and whether the data is what everybody waits for. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

WINDOW = 20
"""Steps of each rank that are looked at: the newest."""
FEWEST = 4
"""With fewer ranks nobody can say who is the odd one."""
DEVIATIONS = 6.0
"""Scaled median absolute deviations above the median; own choice: 3.5 is usual for one value (Iglewicz
and Hoaglin, 1993), and here thousands of ranks are looked at each time."""
SCALE = 1.4826
"""Median absolute deviation to standard deviation, for normal values."""
LEAST_SHARE = 0.10
"""Of the median: ranks that all agree to a millisecond have no spread, and less than this is not worth a node."""
DATA_SHARE = 0.20
"""Of a step spent on waiting for its data; own choice."""


@dataclass(frozen=True)
class SlowRank:
    """A slow rank. seconds, usual_s: its median of own work in a step, and that of the ranks."""

    rank: int
    seconds: float
    usual_s: float

    @property
    def why(self) -> str:
        """For people."""
        more = self.seconds / self.usual_s - 1
        return f"{1000 * self.seconds:.1f} ms of its own work in a step, the median of the ranks is " \
               f"{1000 * self.usual_s:.1f} ms ({more:+.0%})"  # fmt: skip


def stragglers(steps: Mapping[int, Sequence[Mapping[str, Any]]]) -> list[SlowRank]:
    """Slow ranks, the slowest first. steps: of each rank the events with local_s, seconds that needed no other rank."""
    own = {rank: median(values) for rank, events in steps.items() if (values := _values(events, "local_s"))}
    if len(own) < FEWEST:
        return []
    middle = median(own.values())
    spread = SCALE * median(abs(value - middle) for value in own.values())
    most = middle + max(DEVIATIONS * spread, LEAST_SHARE * middle)
    found = [SlowRank(rank, value, middle) for rank, value in own.items() if value > most]
    return sorted(found, key=lambda one: -one.seconds)


def data_share(steps: Mapping[int, Sequence[Mapping[str, Any]]]) -> float | None:
    """Share of a step in which the median rank waits for its data; None where nothing was measured."""
    shares = [
        median(data) / median(whole)
        for events in steps.values()
        if (data := _values(events, "data_s")) and (whole := _values(events, "step_s")) and median(whole) > 0
    ]
    return median(shares) if shares else None


def _values(events: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [float(event[name]) for event in events[-WINDOW:] if isinstance(event.get(name), (int, float))]
