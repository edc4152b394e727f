"""One round of healing: look, plan, and take the steps that are allowed, each written down before and after.

What cannot be taken back (a restart, a reset, a reboot, a replacement, a requeue, a release) is stored as an intent
first and with its outcome after. A controller that finds an intent without an outcome asks what came of it, and
never does it again unless it is proven that it was not done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flightline_node import names
from flightline_node.judge.checks import CHECKS
from flightline_node.know.remedies import BOOT, EC2, REPLACE_INSTANCE
from flightline_node.model import Remedy
from flightline_node.watch import claim

from .journal import incident as incidents
from .journal.incident import Incident, Moment, Proof, advance, intended, settled
from .journal.lease import RenewedLease
from .journal.ledger import ConflictError, Ledger
from .journal.machine import EventKind, NodeState
from .journal.stamps import later, now_utc, seconds
from .plan.ladder import AUTOMATIC, action_of, possible
from .plan.observe import Sighting, absorb
from .plan.planner import (
    Do,
    FleetState,
    NextStep,
    OutsideView,
    RemediationPlan,
    is_lost,
    plan,
)
from .site import SitePolicy
from .steps.outside import seen_outside
from .steps.ports import EdgeError, Ports, StepOutcome, Verified

ACTOR = "flightline-remediate"


@dataclass
class Controller:
    """approve: asked before each step that changes something. say: a line of progress.

    tell: an incident moved on, or was not told of; returns it as people know it now.

    page: a breaker fell in a group.
    """

    ledger: Ledger
    ports: Ports
    site: SitePolicy
    lease: RenewedLease
    approve: Callable[[NextStep], bool] = lambda _: True
    say: Callable[[str], None] = lambda _: None
    tell: Callable[[Incident], Incident] = lambda one: one
    page: Callable[[str, str], None] = lambda *_: None
    clock: Callable[[], str] = now_utc
    _looked_at: str = ""
    _outside: Mapping[str, OutsideView] = field(default_factory=dict)

    def round(self, sightings: Sequence[Sighting], groups: Mapping[str, str]) -> RemediationPlan:
        """Look once and take every step that is allowed now; the plan that was followed."""
        self.remember(sightings)
        for one in self._known():
            # Of one that could not be told, or that was stored by a remediator that was killed.
            self._tell(one)
        made = plan(self.fleet(groups), self.site)
        for trip in made.trips:
            self.lease.check()
            self.ledger.stop(trip.group, trip.why, self.clock(), self.lease.lease)
            self.say(f"STOP {trip.why}")
            self.page(trip.group, trip.why)
        verify = [step for step in made.steps if step.do is Do.VERIFY and self.approve(step)]
        for step in made.steps:
            if step.changes and step.do is not Do.VERIFY and self.approve(step):
                self._safely(step, lambda step=step: self._take(step))  # type: ignore[misc]
        self._verify(verify)
        return made

    def remember(self, sightings: Sequence[Sighting]) -> None:
        """Store what was seen: incidents that open, go on or are over."""
        known = self._known()
        before = {one.id: one for one in known}
        for one in absorb(sightings, known, self.clock()):
            if one != before.get(one.id):
                self._save(one if one.version else replace(one, known_at=self.clock()))

    def fleet(self, groups: Mapping[str, str], asks: bool = True) -> FleetState:
        """What is known now. asks: others too, about hosts that the scheduler lost; else what they said last."""
        known = self._known()
        hosts = {*groups, *(one.host for one in known if one.is_open)}
        places, self._looked_at = None, self.clock()
        try:
            places = self.ports.scheduler.places(sorted(hosts))
        except EdgeError as error:
            self.say(f"warning: {error}")
        able = possible({self.ports.scheduler.name, EC2 if self.ports.machines else ""})
        current = [one for one in known if one.is_open]
        past = [one for one in known if not one.is_open]
        if asks:
            lost = [one for one in current if is_lost(one) and one.state is NodeState.REPAIRING and not one.pending]
            seen = places or {}
            silent = [one for one in lost if one.host in seen and seen[one.host].silent]
            self._outside = seen_outside(self.ports, self.lease.lease.token, silent, seen, groups, self.say)
        return FleetState(self.clock(), groups, places, current, past, self.ledger.stops(), able, self._outside)

    def _known(self) -> list[Incident]:
        since = later(self.clock(), -self.site.window_s)
        return self.ledger.incidents(since=since)

    def _safely(self, step: NextStep, take: Callable[[], None]) -> None:
        """A step that fails leaves the node as it is, with its reason, and costs no other node's step."""
        try:
            self.lease.check()
            take()
        except (EdgeError, ConflictError) as error:
            self.say(f"{step.incident.host}: {step.do}: {error}")

    def _save(self, one: Incident) -> Incident:
        kept = self.ledger.save(one, self.lease.lease)
        return self._tell(kept)

    def _tell(self, one: Incident) -> Incident:
        known = self.tell(one)
        return one if known == one else self.ledger.save(known, self.lease.lease)

    def _add_event(self, one: Incident, what: EventKind, why: str, **more: Any) -> Incident:
        return self._save(advance(one, Moment(self.clock(), what, ACTOR, why, **more)))

    def _take(self, step: NextStep) -> None:
        self.say(f"{step.incident.host}: {step.do}{f' {step.remedy}' if step.remedy else ''}: {step.why}")
        takes: Mapping[Do, Callable[[Incident], None]] = {
            Do.QUARANTINE: self._quarantine,
            Do.ADOPT: lambda one: self._adopt(one, step.why),
            Do.PROPOSE: lambda one: self._propose(one, step),
            Do.SIGNAL: self._signal,
            Do.REQUEUE: self._requeue,
            Do.REPAIR: lambda one: self._repair(one, step.remedy or Remedy.NONE, step.why),
            Do.SETTLE: self._settle,
            Do.RELEASE: self._release,
            Do.RETURN: lambda one: self._return(one, step.why),
        }
        if step.do in takes:
            takes[step.do](step.incident)
            return
        if step.do is Do.LEAVE:
            self._overruled(step.incident)
        self._add_event(step.incident, _NOTES[step.do], step.why)

    def _quarantine(self, one: Incident) -> None:
        place = self.ports.scheduler.place(one.host)
        self.ports.scheduler.drain(one.host, reason_of(one))
        jobs = tuple(job.id for job in place.jobs)
        self._add_event(one, EventKind.QUARANTINED, f"{self.ports.scheduler.name}: {reason_of(one)}", jobs=jobs)

    def _propose(self, one: Incident, step: NextStep) -> None:
        self._add_event(one, EventKind.NOTED, step.why, about=incidents.PROPOSED, step=str(step.remedy))

    def _adopt(self, one: Incident, why: str) -> None:
        """Go on with a drain; one that its health check, or the scheduler, would end without proof becomes ours."""
        place = self.ports.scheduler.place(one.host)
        held = place.claim
        if held and held.by in claim.AROUND_JOBS:
            # It stays counted for what took it out.
            self.ports.scheduler.drain(one.host, claim_of(one)._replace(reason=held.reason).text)
        elif place.lost and not self.ports.scheduler.keeps_lost:
            self.ports.scheduler.drain(one.host, reason_of(one))
        self._add_event(one, EventKind.NOTED if one.is_out else EventKind.QUARANTINED, why)

    def _overruled(self, one: Incident) -> None:
        """Who put the node back has decided against its quarantine as well, or the next prolog takes it out by that."""
        place = self.ports.scheduler.place(one.host)
        if place.known and not place.out:
            try:
                self.ports.nodes.release(one.host, f"overruled-{one.id}", self.lease.lease.token, self._looked_at)
            except EdgeError as error:
                self.say(f"{one.host}: its quarantine could not be ended: {error}; its next prolog does")

    def _signal(self, one: Incident) -> None:
        jobs = tuple(job.id for job in self.ports.scheduler.place(one.host).jobs)
        for job in jobs:
            self.ports.scheduler.signal(job)
        self._add_event(one, EventKind.NOTED, "jobs were told to save", jobs=jobs, about=incidents.SIGNALLED)

    def _requeue(self, one: Incident) -> None:
        jobs = self.ports.scheduler.place(one.host).jobs
        one = self._intend(one, incidents.REQUEUE, {"jobs": [job.id for job in jobs]})
        for job in jobs:
            self.ports.scheduler.requeue(job.id)
        done = settled(one, incidents.DONE, self.clock())
        self._add_event(done, EventKind.NOTED, "jobs were requeued", jobs=tuple(job.id for job in jobs))

    def _repair(self, one: Incident, step: Remedy, why: str) -> None:
        place = self.ports.scheduler.place(one.host)
        if place.known and (place.jobs or not (place.ours or place.lost)):
            raise EdgeError(f"it has jobs or another owner now ({place.reason or 'in service'}): nothing was done")
        machines = self.ports.machines
        if step.row.action == REPLACE_INSTANCE and machines:
            before = machines.before(one)
        else:
            facts = self.ports.nodes.facts([one.host], self.lease.lease.token).get(one.host)
            before = {"boot_id": facts.boot_id, "software": facts.software} if facts else {"boot_id": ""}
        one = self._intend(one, str(step), before, why)
        # An error leaves the intent open: the next round asks what came of it.
        if step.row.action == REPLACE_INSTANCE and machines:
            outcome, swap = machines.replace(one, before)
            one = replace(one, swap=dict(swap))
        else:
            outcome = self.ports.nodes.repair(one.host, step, one)
        if step.row.proof == BOOT and outcome.what == incidents.NOT_DONE and machines:
            outcome = machines.reboot(one)
        if outcome.what != incidents.NOT_YET:
            self._repaired(one, outcome)

    def _intend(self, one: Incident, step: str, before: Mapping[str, Any], why: str = "") -> Incident:
        self.lease.check()
        meant = intended(one, step, self.clock(), self.lease.lease.token, before)
        if step in AUTOMATIC:
            meant = advance(meant, Moment(self.clock(), EventKind.STARTED, ACTOR, f"{step}: {why}"))
        return self._save(meant)

    def _repaired(self, one: Incident, outcome: StepOutcome) -> None:
        step = one.pending.step if one.pending else ""
        done = settled(one, outcome.what, self.clock(), outcome.detail)
        said = f"{step}: {outcome.what}{f' ({outcome.detail})' if outcome.detail else ''}"
        if step not in AUTOMATIC:
            self._add_event(done, EventKind.NOTED, said)
        elif outcome.what in (incidents.DONE, incidents.UNKNOWN):
            self._add_event(done, EventKind.REPAIRED, said)
        else:
            self._add_event(done, EventKind.FAILED, said)

    def _settle(self, one: Incident) -> None:
        attempt = one.pending
        if attempt is None:
            return
        waited_s = seconds(self.clock()) - seconds(attempt.at)
        too_long = waited_s > self.site.repair_min * 60
        outcome: StepOutcome | None = StepOutcome(incidents.UNKNOWN, "the controller ended before it was known")
        if (action_of(attempt.step) == REPLACE_INSTANCE or attempt.step == incidents.RELEASE) and self.ports.machines:
            outcome, swap = self.ports.machines.settle(one, attempt)
            one = replace(one, swap=dict(swap) or one.swap)
        elif attempt.step in AUTOMATIC:
            outcome = self._asked(one, attempt, too_long)
        if outcome is None and too_long:
            outcome = StepOutcome(incidents.UNKNOWN, f"no sign of it within {self.site.repair_min:g} min")
        if outcome:
            self._repaired(one, outcome)

    def _asked(self, one: Incident, attempt: incidents.Attempt, too_long: bool) -> StepOutcome | None:
        """What the node tells of a step; asking it also keeps a controller that sleeps from doing it after all.

        Of a reboot it can be told: the node has another boot id, or still the same.
        """
        before = str(attempt.before.get("boot_id") or "")
        facts = self.ports.nodes.facts([one.host], self.lease.lease.token).get(one.host)
        if facts is None:
            return None
        if Remedy(attempt.step).row.proof != BOOT or not before or not facts.boot_id:
            return StepOutcome(incidents.UNKNOWN, "the controller ended before it was known")
        if facts.boot_id != before:
            return StepOutcome(incidents.DONE, "the node has booted since")
        return StepOutcome(incidents.NOT_DONE, "the node has not booted since") if too_long else None

    def _verify(self, steps: Sequence[NextStep]) -> None:
        """One preflight per level for all nodes that wait for proof."""
        waiting: dict[str, dict[str, Incident]] = {}
        for step in steps:
            names = {name for nodes in waiting.values() for name in nodes}
            name = self._successor(step.incident, names)
            if name:
                waiting.setdefault(step.incident.level, {})[name] = step.incident
        for level, nodes in waiting.items():
            self.say(f"verifying {', '.join(sorted(nodes)[:8])}{' ...' if len(nodes) > 8 else ''}: {level} preflight")
            began = self.clock()
            try:
                self.lease.check()
                found = self.ports.prover.prove(sorted(nodes), level)
            except EdgeError as error:
                self.say(f"warning: {error}")
                continue
            for name, verified in found.items():
                if name in nodes:
                    one = nodes[name]
                    swap = {**one.swap, "new": name, "host": verified.host or name} if one.swap else {}
                    self._judged(replace(one, swap=swap), level, began, verified)

    def _successor(self, one: Incident, names: Collection[str]) -> str:
        """Who must have the proof: the node, or what came in its place; '' while that is not there."""
        if not one.swap or self.ports.machines is None:
            return one.host
        if one.swap.get("new"):
            return str(one.swap["new"])
        others = {str(other.swap["new"]) for other in self._known() if other.swap.get("new")}
        try:
            return self.ports.machines.successor(one.swap, {*names, *others})
        except EdgeError as error:
            self.say(f"{one.host}: {error}")
            return ""

    def _judged(self, one: Incident, level: str, began: str, verified: Verified) -> None:
        same = sorted(one.serials & set(verified.serials)) if one.swap else []
        unmeasured = sorted(_asked_again(one) - (verified.measured or set())) if verified.measured is not None else []
        try:
            if same:
                why = f"the same hardware came back: GPU {', '.join(same)} (run {verified.run})"
                self._add_event(one, EventKind.FAILED, why)
            elif verified.go and unmeasured:
                # No step heals that, so none is taken; a person is told when the time for a proof is over.
                why = f"run {verified.run}: go, but it did not measure {', '.join(unmeasured)}"
                if one.events[-1].what != EventKind.NOTED:  # once, not in each round
                    self._add_event(one, EventKind.NOTED, why)
            elif verified.go:
                proof = Proof(verified.run, level, began, tuple(verified.serials), verified.at)
                why = f"run {verified.run}: go"
                self._save(replace(advance(one, Moment(self.clock(), EventKind.VERIFIED, ACTOR, why)), proof=proof))
            else:
                self._add_event(one, EventKind.FAILED, f"run {verified.run}: no-go: {verified.why}")
        except ConflictError as error:
            self.say(f"{one.host}: {error}; it is judged again")

    def _release(self, one: Incident) -> None:
        if self.ports.machines is None:
            raise EdgeError("instances cannot be given back from here")
        one = self._intend(one, incidents.RELEASE, dict(one.swap))
        self._repaired(one, self.ports.machines.release(one.swap, one))

    def _return(self, one: Incident, why: str) -> None:
        if one.proof is None:
            raise EdgeError("no proof, so it stays out")
        if not one.swap:
            self.ports.nodes.release(
                one.host, one.proof.run, self.lease.lease.token, one.proof.judged_at or one.proof.at
            )
        # An instance that came under another name has its own check at boot; the old name stays out.
        if not one.swap or one.swap.get("host") == one.host:
            self.ports.scheduler.resume(one.host)
        self._add_event(one, EventKind.RETURNED, why)


def _asked_again(one: Incident) -> set[str]:
    """The checks of a node that found its troubles; what only shows across nodes one node cannot be asked."""
    return {trouble.check for trouble in one.troubles if trouble.check in CHECKS or names.is_site(trouble.check)}


_NOTES: Mapping[Do, EventKind] = {
    Do.JUDGE: EventKind.REPAIRED,
    Do.DRAINED: EventKind.DRAINED,
    Do.HOLD: EventKind.HELD,
    Do.LEAVE: EventKind.LEFT,
}


def reason_of(one: Incident) -> str:
    """The reason that Slurm shows."""
    return claim_of(one).text


def claim_of(one: Incident) -> claim.Claim:
    """The claim of the first trouble, at the level that has to prove it healed."""
    first = one.troubles[0]
    run = next((event.run for event in one.events if event.what == EventKind.DETECTED), "")
    return claim.Claim(first.check, first.device, claim.REMEDIATE, one.level, first.reason, run or one.id)
