"""The jobs of a node: who they are, and when one that must go has saved what it has. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from ..journal.stamps import as_text, seconds
from ..site import SitePolicy

MINUTE_S = 60


@dataclass(frozen=True)
class RunningJob:
    """A job that runs on a node, in its scheduler's own words. nodes: how many it has; 0: not known.

    checkpoint: what the job says of itself, minutes from one to the next since its start, or the moment of its next.
    """

    id: str
    user: str = ""
    name: str = ""
    priority: int = 0
    nodes: int = 0
    started: str = ""
    checkpoint: str = ""

    def saves_at(self, after_s: float) -> float | None:
        """When its first checkpoint from a moment on is there; None where it says nothing of one."""
        try:
            every_s = float(self.checkpoint) * MINUTE_S
        except ValueError:
            said_s = seconds(self.checkpoint)
            return said_s if said_s >= after_s else None
        begun_s = seconds(self.started)
        if not (begun_s and MINUTE_S <= every_s < float("inf")):
            return None
        return begun_s + ceil((after_s - begun_s) / every_s) * every_s

    def said(self, now_s: float) -> str:
        """'77 (64 nodes, priority 9000, saves at 2026-11-22T12:30:00Z)'."""
        saves_s = self.saves_at(now_s)
        known = (
            f"{self.nodes} nodes" if self.nodes > 1 else "",
            f"priority {self.priority}" if self.priority else "",
            f"saves at {as_text(saves_s)}" if saves_s is not None else "",
        )
        about = ", ".join(filter(None, known))
        return f"{self.id} ({about})" if about else self.id


def named(jobs: Iterable[RunningJob], now_s: float) -> str:
    """'jobs 77 (64 nodes), 78 and 3 more'; the largest first."""
    listed = sorted(jobs, key=lambda job: (-job.nodes, -job.priority))
    more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
    return f"job{'s' if len(listed) > 1 else ''} {', '.join(job.said(now_s) for job in listed[:5])}{more}"


def kept(jobs: Sequence[RunningJob], site: SitePolicy) -> list[RunningJob]:
    """Those that the site never takes from their nodes."""
    return [
        job
        for job in jobs
        if (site.keep_nodes and job.nodes >= site.keep_nodes)
        or (site.keep_priority and job.priority >= site.keep_priority)
    ]


def saved_at(jobs: Iterable[RunningJob], from_s: float, most_min: float) -> float:
    """When all that save within so many minutes from a moment on have saved; that moment, where none does."""
    times = (job.saves_at(from_s) for job in jobs)
    return max((at for at in times if at is not None and at <= from_s + most_min * MINUTE_S), default=from_s)
