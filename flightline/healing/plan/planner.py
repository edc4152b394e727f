"""What to do now, on which node, why, and what it does to running jobs. Pure: no clock, no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from flightline_node.know.remedies import REPLACE_INSTANCE
from flightline_node.model import Remedy
from flightline_node.watch import claim as claims
from flightline_node.watch.rule import HELD, TOLD
from flightline_node.word import Word

from ...record.reasons import HOST_LOST
from ..journal import incident as incidents
from ..journal.incident import CLAIMED, LOST, Incident
from ..journal.machine import EventKind, NodeState
from ..journal.stamps import as_text, seconds
from ..site import SitePolicy
from .budget import Detection, OutageBudget, Trip, trips
from .jobs import RunningJob, kept, named, saved_at
from .ladder import AUTOMATIC, LadderChoice, choose


class Do(Word):
    """What the next step of a node is."""

    QUARANTINE = "quarantine"
    ADOPT = "adopt"
    WAIT = "wait"
    DRAINED = "drained"
    REQUEUE = "requeue"
    PROPOSE = "propose"
    SIGNAL = "signal"
    REPAIR = "repair"
    JUDGE = "judge"
    SETTLE = "settle"
    VERIFY = "verify"
    RELEASE = "release"
    RETURN = "return"
    HOLD = "hold"
    LEAVE = "leave"
    HELD = "held"


CHANGES = frozenset(set(Do) - {Do.WAIT, Do.HELD})


@dataclass(frozen=True)
class SchedulerView:
    """What the scheduler, or the node's marker where there is none, says of a node.

    out: it takes no new jobs. reason: who says why. reserved: a reservation holds it. known: it was there to be asked.
    gone: why it is sure that there is no such node any more, in words. since: when the reason was set, ISO 8601.
    lost: it is out because the scheduler itself lost the host. silent: it does not hear it now.
    mark: the rule's, of a node in service. address: HOST:PORT of its daemon.
    """

    out: bool = False
    reason: str = ""
    reserved: bool = False
    jobs: tuple[RunningJob, ...] = ()
    known: bool = True
    gone: str = ""
    since: str = field(default="", compare=False)
    lost: bool = False
    silent: bool = field(default=False, compare=False)
    mark: str = field(default="", compare=False)
    address: str = field(default="", compare=False)

    @property
    def ours(self) -> bool:
        """Did Flightline take it out? A person may begin a reason with its name: "flightline: keep this one out"."""
        return self.claim is not None

    @property
    def claim(self) -> claims.Claim | None:
        """Flightline's claim, where one took it out."""
        return claims.read(self.reason) if self.out else None

    @property
    def suspect(self) -> claims.Claim | None:
        """The claim of a node that stays in service because too many have the same."""
        there = None if self.out else claims.read(self.mark)
        return there if there and there.mark in (HELD, TOLD) else None

    @property
    def foreign(self) -> str:
        """Who else holds it, in words; '' for nobody."""
        if self.reserved:
            return "a reservation holds the node"
        if self.out and not self.ours and not self.lost:
            return f"it was taken out by somebody else ({self.reason or 'no reason given'})"
        return ""


@dataclass(frozen=True)
class OutsideView:
    """What others say of a host that the scheduler does not hear: EC2, the host itself, a node beside it.

    said: in words. dead: EC2 says that it is stopped, impaired or to be retired. answers: it does what it is asked.
    reached: its daemon takes connections from the node beside it.
    """

    said: str = ""
    dead: bool = False
    answers: bool = False
    reached: bool = False


@dataclass(frozen=True)
class FleetState:
    """What is known at this moment. places: None where nobody could be asked (the scheduler is down).

    groups: host -> group, every node of the fleet. past: closed incidents of the window. stops: groups whose breaker
    fell. able: steps that are possible here. outside: of hosts that the scheduler lost.
    """

    now: str
    groups: Mapping[str, str]
    places: Mapping[str, SchedulerView] | None
    incidents: Sequence[Incident]
    past: Sequence[Incident] = ()
    stops: Mapping[str, str] = field(default_factory=dict)
    able: Collection[Remedy] = AUTOMATIC
    outside: Mapping[str, OutsideView] = field(default_factory=dict)


@dataclass(frozen=True)
class NextStep:
    """One node's next step. jobs: what it does to running jobs."""

    incident: Incident
    do: Do
    why: str
    jobs: str = ""
    remedy: Remedy | None = None

    @property
    def changes(self) -> bool:
        """Does it change anything?"""
        return self.do in CHANGES


@dataclass
class RemediationPlan:
    """Steps in order, most urgent first; trips: breakers that fell now."""

    steps: list[NextStep] = field(default_factory=list)
    trips: list[Trip] = field(default_factory=list)


def plan(fleet: FleetState, site: SitePolicy) -> RemediationPlan:
    """Decide the next step of every node with an open incident."""
    return _Planner(fleet, site).plan()


class _Planner:
    def __init__(self, fleet: FleetState, site: SitePolicy) -> None:
        self.fleet, self.site, self.now_s = fleet, site, seconds(fleet.now)
        self.sizes = Counter(fleet.groups.values())
        self.open = [one for one in fleet.incidents if one.is_open]
        self.budget = OutageBudget(site, self.sizes, self._out(), self._busy(False), self._busy(True), self._lost())
        self.gates, self.begun = site.gates, incidents.attempts_of((*fleet.past, *fleet.incidents))
        self.by_key: dict[str, list[Incident]] = {}
        for one in (*fleet.past, *fleet.incidents):
            for key in one.keys:
                self.by_key.setdefault(key, []).append(one)

    def plan(self) -> RemediationPlan:
        fallen = [trip for trip in self._trips() if trip.group not in self.fleet.stops]
        stops = {**{trip.group: trip.why for trip in fallen}, **self.fleet.stops}
        # Who is furthest on goes first: finishing frees the budget that beginning takes.
        ordered = sorted(self.open, key=self._urgency)
        steps = [self._stopped(one, stops) or self._next(one) for one in ordered]
        return RemediationPlan(steps, fallen)

    def _out(self) -> Counter[str]:
        places = self.fleet.places or {}
        hosts = {host for host, place in places.items() if place.out and not place.lost and host in self.fleet.groups}
        hosts |= {one.host for one in self.open if one.is_out and not is_lost(one) and one.host in self.fleet.groups}
        return Counter(self.fleet.groups[host] for host in hosts)

    def _lost(self) -> Counter[str]:
        """Hosts that nobody took out: they use up no sick node's place, and serve as little."""
        groups, places = self.fleet.groups, self.fleet.places or {}
        return Counter(groups[host] for host, place in places.items() if place.lost and host in groups)

    def _busy(self, lost: bool) -> Counter[str]:
        begun = (one for one in self.open if one.state is NodeState.VERIFYING or one.pending)
        return Counter(one.group for one in begun if is_lost(one) is lost)

    def _trips(self) -> list[Trip]:
        seen = [
            Detection(kin(one), trouble.check, trouble.reason or trouble.check, one.host, one.opened_at)
            for one in self.open
            for trouble in one.troubles
            if self.now_s - seconds(one.opened_at) <= self.site.window_s and not _excused(one)
        ]
        return trips(seen, {**self.sizes, **{lost_of(group): size for group, size in self.sizes.items()}}, self.site)

    def _urgency(self, one: Incident) -> tuple[int, int, str, str]:
        rungs = [Remedy(t.remedy).row.rung for t in one.troubles if t.remedy in AUTOMATIC]
        return -_PROGRESS.index(one.state), -max(rungs, default=0), one.opened_at, one.host

    def _stopped(self, one: Incident, stops: Mapping[str, str]) -> NextStep | None:
        paused = stops.get(incidents.EVERY, "")
        why = paused or (f"breaker: {stops[kin(one)]}" if kin(one) in stops else "")
        do = Do.HELD if one.state is NodeState.HELD else Do.WAIT
        return NextStep(one, do, why, remedy=self._choice(one).step) if why else None

    def _next(self, one: Incident) -> NextStep:
        if one.state is NodeState.HELD:
            return NextStep(one, Do.HELD, _last_why(one))
        if self.fleet.places is None:
            return NextStep(one, Do.WAIT, "the scheduler does not answer, so nothing is changed")
        place = self.fleet.places.get(one.host, SchedulerView(known=False))
        if one.pending:
            return NextStep(one, Do.SETTLE, f"{one.pending.step} was begun at {one.pending.at} and has no outcome")
        if place.foreign:
            return NextStep(one, Do.WAIT, f"{place.foreign}; Flightline changes nothing on it")
        if place.gone and not one.swap and one.proof is None:
            what = Do.LEAVE if one.is_out else Do.WAIT
            return NextStep(one, what, f"{place.gone}; what comes in its place needs its own proof", "none")
        # With proof it is our own return that was cut off.
        if one.is_out and place.known and not place.out and one.proof is None:
            return NextStep(one, Do.LEAVE, "somebody put it back into service; their decision stands", "none")
        if one.is_out and place.claim and place.claim.by in claims.AROUND_JOBS and not _unjudged(one):
            return NextStep(one, Do.ADOPT, "more is known than its health check asks, so that must not end it", "none")
        return _BY_STATE[one.state](self, one, place)

    def _choice(self, one: Incident) -> LadderChoice:
        related = {other.id: other for key in one.keys for other in self.by_key.get(key, ())}
        done = incidents.tried(one, related.values(), self.now_s, self.site.window_s)
        able = {step for step in self.fleet.able if self.site.replace or step.row.action != REPLACE_INSTANCE}
        able -= incidents.refused_of(one, (*self.fleet.past, *self.fleet.incidents))
        return choose((trouble.remedy for trouble in one.troubles), done, able)

    def _in_service(self, one: Incident, place: SchedulerView) -> NextStep:
        if place.ours or place.lost:
            return NextStep(one, Do.ADOPT, f"it is out already ({place.reason})", "none")
        choice = self._choice(one)
        full = self.budget.take_out(one.group)
        if full:
            return NextStep(one, Do.WAIT, full, remedy=choice.step)
        return NextStep(one, Do.QUARANTINE, choice.why, self._spares(place), choice.step)

    def _draining(self, one: Incident, place: SchedulerView) -> NextStep:
        choice = self._choice(one)
        if place.jobs:
            return self._with_jobs(one, place, choice)
        if choice.step is None and not _unjudged(one):
            return NextStep(one, Do.HOLD, choice.why, "no effect: no job runs there")
        return NextStep(one, Do.DRAINED, "no job runs there any more", "none", choice.step)

    def _with_jobs(self, one: Incident, place: SchedulerView, choice: LadderChoice) -> NextStep:
        jobs, site, listed = place.jobs, self.site, self._named(place)
        left, begun_s = "", self._requeues_at(one, place)
        if begun_s is not None and (big := kept(jobs, site)):
            left = f"; {named(big, self.now_s)} is never requeued here (keep_nodes, keep_priority)"
        elif begun_s is not None:
            told_s = max((seconds(event.at) for event in one.events if event.about == incidents.SIGNALLED), default=0.0)
            if site.signal_min and not told_s and self.now_s >= begun_s - site.signal_min * 60:
                why = f"they are requeued in {max(begun_s - self.now_s, site.signal_min * 60) / 60:.0f} min"
                return NextStep(one, Do.SIGNAL, why, f"sends SIGUSR1 to {listed}", choice.step)
            due_s = max(begun_s, told_s + site.signal_min * 60 if told_s else 0.0)
            if self.now_s >= due_s:
                why = f"the site's deadline of {site.requeue_after_min:g} min has passed"
                return NextStep(one, Do.REQUEUE, why, f"requeues {listed}", choice.step)
            left = f", then requeued at {as_text(due_s)}"
        return NextStep(one, Do.WAIT, f"{listed} may end first{left}", "no effect: it waits for them", choice.step)

    def _requeues_at(self, one: Incident, place: SchedulerView) -> float | None:
        """When its jobs go: at the site's deadline, or at the checkpoint after it; None where they never do."""
        if not self.site.requeue_after_min or any(attempt.step == incidents.REQUEUE for attempt in one.attempts):
            return None
        deadline_s = seconds(one.at(EventKind.QUARANTINED)) + self.site.requeue_after_min * 60
        return saved_at(place.jobs, deadline_s, self.site.checkpoint_min)

    def _named(self, place: SchedulerView) -> str:
        return named(place.jobs, self.now_s)

    def _spares(self, place: SchedulerView) -> str:
        if not place.known:
            return "unknown: no scheduler was asked"
        return f"{self._named(place)} may run to the end, no new job starts" if place.jobs else "none run there"

    def _repairing(self, one: Incident, place: SchedulerView) -> NextStep:
        choice = self._choice(one)
        if _unjudged(one) and not place.silent:
            return NextStep(one, Do.JUDGE, "nobody has looked at it yet: a preflight says what it needs", "none")
        if is_lost(one) and place.silent:
            found = self._unheard(one, choice)
            if isinstance(found, NextStep):
                return found
            choice = found
        if choice.step is None:
            return NextStep(one, Do.HOLD, choice.why, "no effect: no job runs there")
        if place.jobs:
            return NextStep(one, Do.WAIT, f"{self._named(place)} came back: nothing is done under them", "none")
        if shut := self.gates.closed(choice.step, self.fleet.now, self.begun):
            return NextStep(one, Do.WAIT, shut, "none", choice.step)
        if asked := self._asked(one, choice.step, choice.why):
            return asked
        full = self.budget.begin(one.group, is_lost(one))
        if full:
            return NextStep(one, Do.WAIT, full, "none", choice.step)
        self.begun.append((choice.step, self.fleet.now))
        return NextStep(one, Do.REPAIR, choice.why, "no effect: no job runs there", choice.step)

    def _unheard(self, one: Incident, choice: LadderChoice) -> LadderChoice | NextStep:
        """What others see of a host that its scheduler lost decides whether it waits, and which step is next."""
        outside = self.fleet.outside.get(one.host, OutsideView())
        if outside.answers and Remedy.RESTART_APP in self.fleet.able and not restarted(one):
            return LadderChoice(Remedy.RESTART_APP, f"{outside.said}: its scheduler's daemon alone is silent")
        if waits := self._waits_for_the_host(one, outside):
            return NextStep(one, Do.WAIT, waits, "none", choice.step)
        if outside.reached and not outside.dead:
            return self._on_a_broken_path(one, outside)
        return LadderChoice(choice.step, f"{outside.said}; {choice.why}") if outside.said else choice

    def _asked(self, one: Incident, step: Remedy, why: str) -> NextStep | None:
        """Tell people of the step first, and wait for them, where the site wants that; None where it may be taken."""
        wanted = self.gates.ask(step, one.group)
        said, at = incidents.answer(one, step)
        if wanted is None or said == incidents.APPROVED:
            return None
        after = "" if wanted.minutes is None else f" in {wanted.minutes} min"
        how = f"flightline remediate --approve {one.host}, or --veto {one.host}"
        if not said:
            return NextStep(one, Do.PROPOSE, f"{step}{after}: {why}; {how}", "none", step)
        waited_min = (self.now_s - seconds(at)) / 60
        if wanted.minutes is not None and waited_min >= wanted.minutes:
            return None
        left = "until somebody says so" if wanted.minutes is None else f"{wanted.minutes - waited_min:.0f} min more"
        return NextStep(one, Do.WAIT, f"{step} was proposed at {at}; it waits {left}: {how}", "none", step)

    def _waits_for_the_host(self, one: Incident, outside: OutsideView) -> str:
        """Why a host that is not heard is not rebooted yet; '' where it is time, or EC2 says that it is dead."""
        waited_min, most = (self.now_s - seconds(one.opened_at)) / 60, self.site.lost_min
        if outside.dead and most:
            return ""
        if not most:
            return "the scheduler does not hear it, and the site leaves lost hosts to a person (lost_min=0)"
        said = f" ({outside.said})" if outside.said else ""
        return f"it has {most:g} min to come back by itself{said}" if waited_min < most else ""

    def _on_a_broken_path(self, one: Incident, outside: OutsideView) -> NextStep:
        """Its node and its daemon live, so no step of the ladder mends it; a person is told when it stays so."""
        why = f"{outside.said}: the path to it is broken, which no reboot mends"
        late = self.now_s - seconds(one.opened_at) > self.site.verify_min * 60
        return NextStep(one, Do.HOLD if late else Do.WAIT, why, "none")

    def _verifying(self, one: Incident, place: SchedulerView) -> NextStep:
        if one.proof is None:
            since = self.now_s - seconds(_last(one, EventKind.REPAIRED, EventKind.RETRIED))
            if since > self.site.verify_min * 60:
                why = f"no proof within {self.site.verify_min:g} min: {_last_why(one)}"
                return NextStep(one, Do.HOLD, why, "none")
            return NextStep(one, Do.VERIFY, f"a {one.level} preflight must say go", "no effect: it is out of service")
        if one.swap.get("kept") and not _released(one):
            failed = sum(a.step == incidents.RELEASE and a.outcome == incidents.FAILED for a in one.attempts)
            if failed >= incidents.MOST_IN_VAIN:
                return NextStep(one, Do.HOLD, f"the bad instance could not be given back: {_last_why(one)}", "none")
            why = f"run {one.proof.run} proved the replacement, so the bad instance is reported and given back"
            return NextStep(one, Do.RELEASE, why, "none")
        return NextStep(one, Do.RETURN, f"run {one.proof.run} ({one.proof.level}) says go", "lets new jobs start there")


_BY_STATE = {
    NodeState.IN_SERVICE: _Planner._in_service,
    NodeState.QUARANTINED: _Planner._draining,
    NodeState.DRAINING: _Planner._draining,
    NodeState.REPAIRING: _Planner._repairing,
    NodeState.VERIFYING: _Planner._verifying,
}
_PROGRESS = [NodeState.IN_SERVICE, NodeState.HELD, NodeState.QUARANTINED, NodeState.DRAINING, NodeState.REPAIRING,
             NodeState.VERIFYING]  # fmt: skip


def is_lost(one: Incident) -> bool:
    """Is all that is known that the scheduler lost the host?"""
    return all(trouble.reason == HOST_LOST.id for trouble in one.troubles)


def restarted(one: Incident) -> bool:
    """Was its scheduler's daemon restarted, or that tried?"""
    return any(attempt.step == Remedy.RESTART_APP for attempt in one.attempts)


def kin(one: Incident) -> str:
    """Whose breaker stops it: its group's, or that of the group's lost hosts, whose loss says nothing of the sick."""
    return lost_of(one.group) if is_lost(one) else one.group


def lost_of(group: str) -> str:
    """What the lost hosts of a group are called beside it."""
    return f"{group}:lost"


def _unjudged(one: Incident) -> bool:
    """Does it rest on the scheduler's word alone, and has no preflight looked at the node since?"""
    judged = (EventKind.FAILED, EventKind.VERIFIED, EventKind.RETRIED)
    return one.events[0].about in (CLAIMED, LOST) and not any(event.what in judged for event in one.events)


def _excused(one: Incident) -> bool:
    """Did a person look at it since it was detected and reset the breaker?"""
    return any(event.about == incidents.BREAKER_RESET for event in one.events)


def _released(one: Incident) -> bool:
    return any(
        attempt.step == incidents.RELEASE and attempt.outcome in (incidents.DONE, incidents.UNKNOWN)
        for attempt in one.attempts
    )


def _last(one: Incident, *kinds: EventKind) -> str:
    return next((event.at for event in reversed(one.events) if event.what in kinds), one.opened_at)


def _last_why(one: Incident) -> str:
    return one.events[-1].why if one.events else ""
