"""What other settings would have done: the loop's first steps over the incidents of the last hours. Pure.

Each incident is given to the planner as it stood at every moment that was written down. What the step would have
changed after that is not known, so a line says what was planned at a moment, not what would have come of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..journal.incident import NOT_YET, Incident, advance
from ..journal.machine import NodeState
from ..journal.stamps import seconds
from ..site import SitePolicy
from .planner import Do, FleetState, SchedulerView, plan

OURS = "flightline: node by remediate at quick for replayed"


@dataclass(frozen=True)
class ReplayLine:
    """A step that would have been planned for a node, first at that moment."""

    at: str
    host: str
    do: Do
    what: str
    why: str


def replay(found: Sequence[Incident], groups: Mapping[str, str], site: SitePolicy, since: str) -> list[ReplayLine]:
    """The steps in order of time, each once per incident."""
    moments = sorted({event.at for one in found for event in one.events if event.at >= since}, key=seconds)
    told: set[tuple[str, str, str]] = set()
    lines: list[ReplayLine] = []
    for at in moments:
        known = [part for one in found if (part := until(one, at))]
        current = [one for one in known if one.is_open]
        places = {host: SchedulerView() for host in groups}
        places |= {one.host: SchedulerView(True, OURS) for one in current if one.is_out}
        past = [one for one in known if not one.is_open]
        made = plan(FleetState(at, groups, places, current, past), site)
        lines += _new(((trip.group, "STOP", trip.why) for trip in made.trips), at, told)
        steps = ((s.incident, s) for s in made.steps if s.do is not Do.HELD)
        for one, step in steps:
            key = (one.id, str(step.do), str(step.remedy or ""))
            if key not in told:
                told.add(key)
                lines.append(ReplayLine(at, one.host, step.do, str(step.remedy or ""), step.why))
    return lines


def _new(trips: Iterable[tuple[str, str, str]], at: str, told: set[tuple[str, str, str]]) -> list[ReplayLine]:
    fresh = [trip for trip in trips if trip not in told]
    told.update(fresh)
    return [ReplayLine(at, group, Do.WAIT, what, why) for group, what, why in fresh]


def until(one: Incident, at: str) -> Incident | None:
    """An incident as it was known at a moment; None before it was opened."""
    limit = seconds(at)
    if seconds(one.opened_at) > limit:
        return None
    blank = replace(one, state=NodeState.IN_SERVICE, events=(), attempts=(), proof=None, closed_at="")
    for event in one.events:
        if seconds(event.at) <= limit:
            blank = advance(blank, event)
    begun = tuple(a for a in one.attempts if seconds(a.at) <= limit)
    known = tuple(a if a.ended_at and seconds(a.ended_at) <= limit else replace(a, outcome=NOT_YET) for a in begun)
    proof = one.proof if one.proof and seconds(one.proof.at) <= limit else None
    return replace(blank, attempts=known, proof=proof)
