"""Advise, ask and act: the fleet as it stands now, the plan, and one round of the controller."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from flightline_node.know.remedies import EC2

from ..cloud.clients import Clients
from ..cloud.publish_settings import from_environment, publish
from ..cloud.telling import voice_of
from ..fleet.proofs import proofs
from ..report.text import count
from ..run import cluster_inventory
from ..run.locate import open_store
from ..run.playbooks import sources
from ..store.sqlite import LATEST, SqliteStore, StoreError, default_path, is_aws
from .controller import ACTOR, Controller
from .journal.incident import APPROVED, BREAKER_RESET, DONE, EVERY, PROPOSED, Moment, advance, answer
from .journal.lease import LeaseLostError, keeping, me
from .journal.ledger import ConflictError, Ledger, open_ledger
from .journal.machine import EventKind, NodeState
from .journal.notice import Notices
from .journal.stamps import later, now_utc, seconds
from .plan.budget import most_out
from .plan.due import due
from .plan.ladder import possible
from .plan.observe import MARKER_SCHEMA, Sighting, absorb, from_claim, from_marker
from .plan.planner import FleetState, NextStep, RemediationPlan, SchedulerView, kin, plan
from .plan.replay import replay
from .plan.seen import LastSeen, look
from .site import SitePolicy
from .steps import slurm
from .steps.ec2 import Ec2
from .steps.idle import IdleProof, begin
from .steps.kubernetes import KubernetesScheduler
from .steps.kubernetes_nodes import KubernetesNodes
from .steps.nodes import AnsibleNodes, Markers
from .steps.ports import EdgeError, IdleHolder, Ports, Scheduler
from .steps.prove import Preflight

SCHEDULERS = ("auto", "slurm", "kubernetes", "none")
Report = Callable[[RemediationPlan, FleetState, SitePolicy, str, str, str], None]
"""Shows a plan: plan, fleet, settings, facts of the run, who saw what is not said again, a trouble."""


@dataclass(frozen=True)
class HealingRequest:
    """What the user asked for. store: a file or `aws`, None for the default.

    every_s: a round that often; 0 for one, in which no idle node is proven.
    """

    run: str
    inventory: tuple[str, ...]
    scheduler: str
    ec2: bool
    site: SitePolicy
    store: str | None
    every_s: float = 0.0

    def asked_scheduler(self, inventory: Sequence[str]) -> Scheduler | None:
        """Who starts jobs; None where nobody does. auto: Kubernetes where the inventory is its cluster."""
        auto = self.scheduler == "auto"
        if self.scheduler == KubernetesScheduler.name or (auto and _is_kubernetes(inventory)):
            return KubernetesScheduler(policy=self.site.rule)
        return (
            slurm.SlurmScheduler(policy=self.site.rule)
            if self.scheduler == "slurm" or (auto and slurm.is_here())
            else None
        )

    def named(self, recorded: str) -> tuple[str, ...]:
        """The inventories: as asked for, else those of the run where they are still there, else none."""
        parts = tuple(part for part in recorded.split(", ") if part)
        there = parts if all(Path(part).exists() for part in parts) else ()
        own = self.inventory or tuple(cluster_inventory.word_of(part) or part for part in there)
        return tuple(part if cluster_inventory.is_word(part) else str(Path(part).absolute()) for part in own)


def _is_kubernetes(inventory: Sequence[str]) -> bool:
    return cluster_inventory.launcher_of(inventory) == KubernetesScheduler.name


def advise(asked: HealingRequest, report: Report) -> bool:
    """Show the plan and change nothing; is there anything to do?"""
    with open_store(asked.store) as store:
        seen = look(store, asked.run)
    with closing(open_ledger(asked.store)) as ledger:
        known = ledger.incidents(since=later(now_utc(), -asked.site.window_s))
        stops = ledger.stops()
    now = now_utc()
    places: Mapping[str, SchedulerView] | None = {}
    trouble = ""
    scheduler = asked.asked_scheduler(asked.named(seen.run.inventory))
    if scheduler:
        try:
            places = scheduler.places(list(seen.groups))
        except EdgeError as error:
            places, trouble = None, str(error)
    current = absorb([*seen.sightings, *_told(seen, places or {})], known, now)
    past = [one for one in known if not one.is_open]
    there = {scheduler.name if scheduler else Markers.name, EC2 if asked.ec2 or _on_ec2(seen) else ""}
    fleet = FleetState(now, seen.groups, places, [one for one in current if one.is_open], past, stops, possible(there))
    made = plan(fleet, asked.site)
    report(made, fleet, asked.site, _facts(seen), f"run {seen.run.run_id}", trouble)
    return bool(made.steps)


def _on_ec2(seen: LastSeen) -> bool:
    return any(one.instance_id.startswith("i-") for one in seen.sightings)


def _facts(seen: LastSeen) -> str:
    return f"run {seen.run.run_id} | level {seen.run.level} | {len(seen.groups):,} nodes"


def do(
    asked: HealingRequest, report: Report, say: Callable[[str], None], approve: Callable[[NextStep], bool] | None
) -> bool:
    """One round under the lease; is there anything left to do? Raises StoreError while another remediator has it."""
    path = _file(asked)
    with open_store(asked.store) as store:
        seen = look(store, asked.run)
    with closing(open_ledger(asked.store)) as ledger:
        lease = ledger.acquire(me(), time.time(), asked.site.lease_s)
        if lease is None:
            holder = ledger.holder()
            who = holder.owner if holder else "another remediator"
            raise StoreError(f"{asked.store or path}: saw {who} at work, wanted to be alone; do: wait, or end it")
        with keeping(ledger, lease, time.time, asked.site.lease_s) as kept:
            ports = _ports(asked, seen, path, lease.token)
            controller = Controller(ledger, ports, asked.site, kept, say=say)
            controller.approve = approve or controller.approve
            wanted = publish(from_environment())
            if wanted and wanted.tells:
                notices = Notices(voice_of(wanted, Clients(wanted.region)), wanted.scope, say)
                controller.tell, controller.page = notices.incident, notices.stop
            try:
                made, fleet = _round(controller, asked, seen, say)
                if asked.every_s and approve is None:
                    made, fleet = _prove_idle(controller, asked, path, fleet, say) or (made, fleet)
            except LeaseLostError as error:
                raise StoreError(f"{path}: saw that {error}, wanted to keep it: nothing more was begun") from error
    report(made if approve is None else plan(fleet, asked.site), fleet, asked.site, _facts(seen), "", "")
    return bool(plan(fleet, asked.site).steps)


def _round(
    controller: Controller, asked: HealingRequest, seen: LastSeen, say: Callable[[str], None]
) -> tuple[RemediationPlan, FleetState]:
    """One round; the plan that was followed, and the fleet after it."""
    ports, ledger, lease = controller.ports, controller.ledger, controller.lease.lease
    sightings = [*seen.sightings, *_markers(seen, ports, ledger, lease.token, say)]
    return controller.round(sightings, seen.groups), controller.fleet(seen.groups, asks=False)


def _prove_idle(
    controller: Controller, asked: HealingRequest, path: Path, fleet: FleetState, say: Callable[[str], None]
) -> tuple[RemediationPlan, FleetState] | None:
    """Prove idle nodes that are due, and go on with rounds meanwhile; what the last of them came to, None without."""
    proof, last = None, None
    try:
        proof = _begun_proof(controller, asked, path, fleet)
        if proof is None:
            return None
        say(f"proving {', '.join(proof.hosts[:8])}{' ...' if len(proof.hosts) > 8 else ''}: {proof.level}, while idle")
        while not proof.wait(asked.every_s):
            last = _again(controller, asked, say)
            if any(one.is_open and one.host in proof.hosts for one in last[1].incidents):
                proof.end()  # a step may be next there
        if proof.trouble:
            say(f"warning: {proof.trouble}")
        run = proof.judging.keep()
        say(f"proven: run {run or 'none'}{f', ended early: {proof.why}' if proof.why else ''}")
        return _again(controller, asked, say)
    except EdgeError as error:
        say(f"warning: idle nodes are not proven: {error}")
        return last
    finally:
        if proof:
            proof.end()
            if not controller.lease.lost:  # what is held then is another's
                with suppress(EdgeError):  # the next round asks again
                    proof.holder.give_back()


def _again(
    controller: Controller, asked: HealingRequest, say: Callable[[str], None]
) -> tuple[RemediationPlan, FleetState]:
    with open_store(asked.store) as store:
        seen = look(store, asked.run)
    return _round(controller, asked, seen, say)


def _begun_proof(controller: Controller, asked: HealingRequest, path: Path, fleet: FleetState) -> IdleProof | None:
    """A proof of what is due; None where nothing is, or where the scheduler cannot lend nodes. Raises EdgeError."""
    holder, prover, nodes = controller.ports.scheduler, controller.ports.prover, controller.ports.nodes
    if not (isinstance(holder, IdleHolder) and isinstance(prover, Preflight)):
        return None

    def stop_why() -> str:
        return controller.ledger.stops().get(EVERY, "") or controller.lease.lost

    def yields(hosts: Collection[str]) -> None:
        # Nobody tells a program in a container that its `kubectl exec` is gone; by SSH its output breaks.
        if isinstance(nodes, KubernetesNodes):
            nodes.ask(hosts, "yield", controller.lease.lease.token)

    if left := holder.give_back():  # by a remediator that was killed
        yields(left)
    with SqliteStore(path) as store:
        chosen = due(fleet, proofs(store, fleet.now), asked.site)
    return begin(holder, prover, chosen, stop_why, yields) if chosen else None


def _file(asked: HealingRequest) -> Path:
    """Where proofs are kept: runs go to a file first, also when incidents are in AWS."""
    return Path(asked.store).expanduser().absolute() if asked.store and not is_aws(asked.store) else default_path()


def _inventory(asked: HealingRequest, seen: LastSeen) -> tuple[str, ...]:
    return asked.named(seen.run.inventory) or tuple(str(Path(part).absolute()) for part in sources(()))


def _nodes(inventory: tuple[str, ...]) -> AnsibleNodes:
    return KubernetesNodes(inventory) if _is_kubernetes(inventory) else AnsibleNodes(inventory)


def _ports(asked: HealingRequest, seen: LastSeen, path: Path, token: int) -> Ports:
    inventory = _inventory(asked, seen)
    nodes = _nodes(inventory)
    scheduler: Scheduler = asked.asked_scheduler(inventory) or Markers(nodes, token)
    published = publish(from_environment())
    machines = Ec2(Clients(published.region if published else "")) if asked.ec2 else None
    return Ports(scheduler, nodes, Preflight(inventory, path), machines)


def _markers(
    seen: LastSeen, ports: Ports, ledger: Ledger, token: int, say: Callable[[str], None]
) -> Sequence[Sighting]:
    """Nodes that are out, or suspects, or lost, while no incident tells that. With Slurm those it shows."""
    try:
        places = ports.scheduler.places(list(seen.groups))
        known = {one.host for one in ledger.incidents(only_open=True) if one.is_out}
        ours = {host: place for host, place in places.items() if place.ours or place.suspect or place.lost}
        out = {host: place for host, place in ours.items() if host not in known}
        marked = _read(seen, ports, {host: place for host, place in out.items() if not place.lost}, token, say)
        for one in marked:
            del out[one.host]
        return [*marked, *_told(seen, out)]
    except EdgeError as error:
        say(f"warning: {error}")
        return []


def _told(seen: LastSeen, places: Mapping[str, SchedulerView]) -> list[Sighting]:
    """What the scheduler alone says of nodes."""
    names = {one.host: one.instance_id for one in seen.sightings}
    found = (from_claim(host, names.get(host, ""), seen.groups[host], one, now_utc()) for host, one in places.items())
    return [one for one in found if one]


def _read(
    seen: LastSeen, ports: Ports, hosts: Mapping[str, SchedulerView], token: int, say: Callable[[str], None]
) -> list[Sighting]:
    found = []
    for host, facts in (ports.nodes.facts(hosts, token) if hosts else {}).items():
        if facts.marker is None:
            continue
        try:
            found.append(from_marker(host, seen.groups[host], facts.marker, hosts[host].since))
        except ValueError as error:
            say(f"warning: {error}; a person has to look at {MARKER_SCHEMA}: {json.dumps(facts.marker)[:200]}")
    return found


def retry(asked: HealingRequest, node: str) -> str:
    """Have a held node judged again in the next round. Raises StoreError."""
    with closing(open_ledger(asked.store)) as ledger:
        held = [one for one in ledger.incidents(only_open=True, name=node) if one.state is NodeState.HELD]
        if not held:
            raise StoreError(
                f"saw no held incident of {node}, wanted one; do: `flightline incidents --open` lists what is open"
            )
        for one in held:
            ledger.save(advance(one, Moment(now_utc(), EventKind.RETRIED, _person(), "asked for by --retry")), None)
    return f"{node}: judged again in the next round, and returned when it is good"


def decide(asked: HealingRequest, node: str, approved: bool) -> str:
    """Let the step be taken that was proposed for a node, or hold the node. Raises StoreError."""
    with closing(open_ledger(asked.store)) as ledger:
        for one in ledger.incidents(only_open=True, name=node):
            event = next((event for event in reversed(one.events) if event.about == PROPOSED), None)
            if event and answer(one, event.step)[0]:
                what, why = (EventKind.NOTED, f"{event.step} approved") if approved else (EventKind.HELD, "vetoed")
                decided = Moment(now_utc(), what, _person(), why, about=APPROVED if approved else "", step=event.step)
                ledger.save(advance(one, decided), None)
                after = "is taken in the next round" if approved else f"is not taken; --retry {node} goes on"
                return f"{node}: {event.step} {after}"
    raise StoreError(
        f"{node}: saw no step that waits for a person, wanted one; do: `flightline incidents --open` lists them"
    )


def replayed(asked: HealingRequest, hours: float) -> str:
    """What these settings would have done with the incidents of the last hours, in lines. Changes nothing."""
    since = later(now_utc(), -hours * 3600)
    with open_store(asked.store) as store:
        seen = look(store, asked.run)
    with closing(open_ledger(asked.store)) as ledger:
        found = ledger.incidents(since=later(since, -asked.site.window_s))
    groups = {**{one.host: one.group for one in found}, **seen.groups}
    lines = replay(found, groups, asked.site, since)
    said = [f"{one.at[:19]}  {one.host}  {one.do}{f' {one.what}' if one.what else ''}: {one.why}" for one in lines]
    head = f"{count(len(lines), 'step')} planned over {count(len(found), 'incident')} since {since[:19]}, none taken"
    return "\n".join([head, *said])


def pause(asked: HealingRequest, why: str) -> str:
    """Let nobody change a node's state until resume: no step, no drain by a watcher, no hook. Raises StoreError."""
    with closing(open_ledger(asked.store)) as ledger:
        ledger.stop(EVERY, f"paused by {_person()}: {why}", now_utc(), None)
    missing = _ask_all(asked, "pause", {"by": _person(), "why": why})
    return f"paused; {missing}`flightline remediate --resume` goes on"


def resume(asked: HealingRequest) -> str:
    """End a pause. Raises StoreError."""
    with closing(open_ledger(asked.store)) as ledger:
        if not ledger.reset(EVERY):
            raise StoreError("saw no pause, wanted one; do: `flightline incidents` names breakers and pauses")
    missing = _ask_all(asked, "resume", {})
    return f"goes on in the next round; {missing}what watchers found meanwhile is drained now"


def _ask_all(asked: HealingRequest, action: str, about: Mapping[str, str]) -> str:
    """Ask every node of the fleet; in words, who did not answer: its watcher goes on as before."""
    try:
        with open_store(asked.store) as store:
            seen = look(store, asked.run)
        nodes = _nodes(_inventory(asked, seen))
        said = nodes.ask(list(seen.groups), action, 0, {"flightline_heal_markers": dict.fromkeys(seen.groups, about)})
    except (EdgeError, StoreError) as error:
        return f"no node was asked ({error}), so their watchers go on; "
    lost = sorted(set(seen.groups) - {host for host, reply in said.items() if reply.said.get("outcome") == DONE})
    listed = f"{', '.join(lost[:8])}{' ...' if len(lost) > 8 else ''}"
    return f"{len(lost)} of {len(seen.groups)} nodes did not answer ({listed}); " if lost else ""


def reset(asked: HealingRequest, group: str) -> str:
    """Go on in a group whose breaker fell: what was seen until now counts no more. Raises StoreError."""
    try:
        with open_store(asked.store) as store:
            seen = look(store, LATEST)
        hosts = [host for host, one in seen.groups.items() if one == group.partition(":")[0]]
        scheduler = asked.asked_scheduler(asked.named(seen.run.inventory))
    except StoreError:  # no whole run yet: only the breaker is known
        hosts, scheduler = [], None
    with closing(open_ledger(asked.store)) as ledger:
        places = scheduler.places(hosts) if scheduler else {}
        suspects = sorted(host for host, place in places.items() if place.suspect)
        if group not in ledger.stops() and not suspects:
            raise StoreError(
                f"{group}: saw no breaker that fell there; wanted one of: {', '.join(ledger.stops()) or 'none'}"
            )
        for one in ledger.incidents(since=later(now_utc(), -asked.site.window_s)):
            if kin(one) == group and seconds(one.opened_at):
                note = Moment(now_utc(), EventKind.NOTED, _person(), "breaker reset", about=BREAKER_RESET)
                try:
                    ledger.save(advance(one, note), None)
                except ConflictError:
                    raise StoreError(
                        f"{group}: saw a remediator that is writing, wanted to be alone; do: try again"
                    ) from None
        ledger.reset(group)
        if scheduler:
            scheduler.let_go(suspects)
    out = sum(place.out for place in places.values())
    return (
        f"{group}: its breaker is reset, and what was found until now counts no more. {out} of {len(hosts)} nodes are "
        f"out, at most {most_out(len(hosts), asked.site)} may be, fewer for one reason. "
        f"{len(suspects)} suspects{': ' if suspects else ''}{', '.join(suspects[:20])} ask again within a minute: "
        "as many as may leave do, the rest stay in service; each that leaves is repaired and returns with its proof"
    )


def _person() -> str:
    return f"{me().split('/')[0]} ({ACTOR})"
