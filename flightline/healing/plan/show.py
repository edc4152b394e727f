"""A plan as people read it, and as scripts do. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...report.text import clean, count
from ..journal.incident import Incident
from ..journal.machine import EventKind
from ..site import SitePolicy
from .budget import most_out
from .planner import Do, FleetState, NextStep, RemediationPlan

Line = tuple[str, str]
"""A heading or label, and its text."""

MOST_SHOWN = 200
TITLES: Mapping[Do, str] = {
    Do.QUARANTINE: "take out of service",
    Do.ADOPT: "go on with a node that is out",
    Do.WAIT: "wait",
    Do.DRAINED: "drained",
    Do.REQUEUE: "requeue its jobs",
    Do.PROPOSE: "tell people before it is repaired",
    Do.SIGNAL: "tell its jobs to save",
    Do.REPAIR: "repair",
    Do.SETTLE: "find out whether a begun step was done",
    Do.VERIFY: "verify",
    Do.RELEASE: "give the bad instance back",
    Do.RETURN: "return to service",
    Do.HOLD: "hold for a person",
    Do.LEAVE: "leave to others",
    Do.HELD: "held",
}
_REPAIRS = frozenset({Do.QUARANTINE, Do.ADOPT, Do.WAIT, Do.DRAINED})


def title(step: NextStep) -> str:
    """'gpu-03 (i-0abc): take out of service'."""
    one = step.incident
    name = f"{one.host} ({one.instance_id})" if one.instance_id else one.host
    what = f"{TITLES[step.do]}: {step.remedy}" if step.do is Do.REPAIR else TITLES[step.do]
    return clean(f"{name}: {what}")


def lines(step: NextStep, known: str = "") -> list[Line]:
    """What was seen, why this step, what comes then, what it does to jobs. known: who saw it, said above already."""
    found = [("saw", _saw(step.incident, known)), ("waits" if step.do is Do.WAIT else "why", step.why)]
    if step.do in _REPAIRS:
        found.append(("then", then(step)))
    if step.jobs:
        found.append(("jobs", step.jobs))
    return [(label, clean(text)) for label, text in found]


def then(step: NextStep) -> str:
    """What follows once the node is out."""
    if step.remedy is None:
        return "held for a person: no step of the ladder would heal it"
    return f"{step.remedy}, and back only when a {step.incident.level} preflight says go"


def _saw(one: Incident, known: str) -> str:
    more = f" (+{len(one.troubles) - 1} more)" if len(one.troubles) > 1 else ""
    by = next((event.actor for event in one.events if event.what == EventKind.DETECTED), "")
    return f"{one.troubles[0].said if one.troubles else 'nothing'}{more}{'' if by == known else f' ({by})'}"


def group_lines(fleet: FleetState, site: SitePolicy) -> list[Line]:
    """Each group: its size, what is out, what may be."""
    sizes = Counter(fleet.groups.values())
    places = fleet.places or {}
    gone = {host for host, place in places.items() if place.out} | {one.host for one in fleet.incidents if one.is_out}
    out = Counter(fleet.groups[host] for host in gone if host in fleet.groups)
    need = f", {site.need} must stay" if site.need else ""
    return [
        (group, f"{count(size, 'node')}, {out[group]} out, at most {most_out(size, site)} may be{need}")
        for group, size in sorted(sizes.items())
    ]


def headline(made: RemediationPlan, mode: str) -> str:
    """The plan in a sentence."""
    changing = [step for step in made.steps if step.changes]
    if not made.steps:
        return "nothing to do: no node has an open trouble"
    waiting = len(made.steps) - len(changing)
    tail = "; advise changes nothing" if mode == "advise" else ""
    return f"{count(len(changing), 'step')}, {waiting} waiting or held{tail}"


def as_dict(made: RemediationPlan, shown: Sequence[NextStep] | None = None) -> dict[str, Any]:
    """The plan for scripts."""
    return {
        "schema": "flightline-plan/1",
        "breakers": [
            {"group": trip.group, "check": trip.check, "reason": trip.reason, "hosts": list(trip.hosts)}
            for trip in made.trips
        ],
        "steps": [_step_dict(step) for step in (made.steps if shown is None else shown)],
    }


def _step_dict(step: NextStep) -> dict[str, Any]:
    one, remedy = step.incident, str(step.remedy) if step.remedy else None
    node = {"host": one.host, "instance_id": one.instance_id, "group": one.group, "incident": one.id}
    next_ = {"state": str(one.state), "do": str(step.do), "remedy": remedy, "why": step.why, "jobs": step.jobs}
    troubles = [{"key": item.key, "check": item.check, "remedy": item.remedy} for item in one.troubles]
    return {**node, **next_, "troubles": troubles}
