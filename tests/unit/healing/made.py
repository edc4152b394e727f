"""Incidents and fleets for the tests of healing, written by hand."""

from dataclasses import replace

from flightline.healing.journal.incident import Attempt, Incident, Moment, NodeTrouble, Proof, advance, opened
from flightline.healing.journal.machine import EventKind
from flightline.healing.plan.planner import FleetState, SchedulerView, plan
from flightline.healing.site import SitePolicy

T0 = "2026-11-22T12:00:00+00:00"
H = EventKind


def trouble(remedy="REBOOT", check="xid", serial="1650000000001", **more) -> NodeTrouble:
    key = f"{check}@{serial}" if serial else f"{check}@i-1:"
    return NodeTrouble(key, check, remedy, f"{check} says {remedy}", "GPU 3", serial, **more)


def incident(host="n1", *troubles: NodeTrouble, group="p5", at=T0) -> Incident:
    found = troubles or (trouble(),)
    return opened(host, f"i-{host}", group, "quick", found, Moment(at, H.DETECTED, "run R1", run="R1"))


def through(one: Incident, *kinds: EventKind, at=T0) -> Incident:
    for kind in kinds:
        one = advance(one, Moment(at, kind, "test"))
    return one


def attempted(one: Incident, step: str, outcome="done", at=T0) -> Incident:
    attempt = Attempt(len(one.attempts) + 1, step, at, 1, outcome, at)
    return replace(one, attempts=(*one.attempts, attempt))


def proven(one: Incident, run="R9") -> Incident:
    return replace(one, proof=Proof(run, one.level, T0))


def hosts(count: int, group="p5") -> dict[str, str]:
    return {f"n{number}": group for number in range(1, count + 1)}


def fleet(*incidents: Incident, size=20, places=None, now=T0, **more) -> FleetState:
    groups = hosts(size)
    given = {host: SchedulerView() for host in groups} | (places or {})
    return FleetState(now, groups, given, incidents, **more)


def steps(*incidents: Incident, site: SitePolicy | None = None, **more):
    return plan(fleet(*incidents, **more), site or SitePolicy()).steps
