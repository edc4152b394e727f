"""Advise, ask and act: the fleet as it stands now, the plan, and one round of the controller."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

from flightline_node.know.remedies import EC2

from ..cloud.clients import Clients, explained
from ..cloud.measures import put
from ..cloud.publish_settings import Publish, from_environment, publish
from ..cloud.telling import voice_of
from ..fleet.proofs import proofs
from ..run.locate import open_store
from ..store.sqlite import SqliteStore, StoreError
from .controller import Controller
from .journal.incident import EVERY
from .journal.lease import LeaseLostError, keeping, me
from .journal.ledger import Ledger, open_ledger
from .journal.notice import Notices
from .journal.stamps import later, now_utc
from .journal.times import numbers
from .plan.due import due
from .plan.ladder import possible
from .plan.observe import MARKER_SCHEMA, Sighting, absorb, from_claim, from_marker
from .plan.planner import FleetState, NextStep, RemediationPlan, SchedulerView, plan
from .plan.seen import LastSeen, look
from .request import HealingRequest, file_of, inventory_of, nodes_of
from .site import SitePolicy
from .steps.ec2 import Ec2
from .steps.idle import IdleProof, begin
from .steps.kubernetes_nodes import KubernetesNodes
from .steps.nodes import Markers
from .steps.ports import EdgeError, IdleHolder, Ports, Scheduler
from .steps.prove import Preflight

Report = Callable[[RemediationPlan, FleetState, SitePolicy, str, str, str], None]
"""Shows a plan: plan, fleet, settings, facts of the run, who saw what is not said again, a trouble."""


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
    path = file_of(asked)
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
                if wanted and wanted.namespace and asked.every_s:
                    _measure(ledger, wanted, asked.site, say)
            except LeaseLostError as error:
                raise StoreError(f"{path}: saw that {error}, wanted to keep it: nothing more was begun") from error
    report(made if approve is None else plan(fleet, asked.site), fleet, asked.site, _facts(seen), "", "")
    return bool(plan(fleet, asked.site).steps)


def _measure(ledger: Ledger, wanted: Publish, site: SitePolicy, say: Callable[[str], None]) -> None:
    """Send the numbers of the incidents; what cannot be sent is said, and the next round sends what is true then."""
    known = ledger.incidents(since=later(now_utc(), -site.window_s))
    try:
        with explained(EdgeError, f"cannot send the incidents' numbers to {wanted.namespace}"):
            put(Clients(wanted.region), wanted.namespace, numbers(known))
    except EdgeError as error:
        say(f"warning: {error}")


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
        paused = ""
        with suppress(StoreError):  # of a store that stays silent the lease is lost, and that ends it
            paused = controller.ledger.stops().get(EVERY, "")
        return paused or controller.lease.lost

    def yields(hosts: Collection[str]) -> None:
        # Nobody tells a program in a container that its `kubectl exec` is gone; by SSH its output breaks.
        if isinstance(nodes, KubernetesNodes):
            nodes.ask(hosts, "yield", controller.lease.lease.token)

    if left := holder.give_back():  # by a remediator that was killed
        yields(left)
    with SqliteStore(path) as store:
        chosen = due(fleet, proofs(store, fleet.now), asked.site)
    return begin(holder, prover, chosen, stop_why, yields) if chosen else None


def _ports(asked: HealingRequest, seen: LastSeen, path: Path, token: int) -> Ports:
    inventory = inventory_of(asked, seen)
    nodes = nodes_of(inventory)
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
