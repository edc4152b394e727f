"""The remediator of a run of faults: real Slurm, real watchers and their markers; repairs and proofs are simulated.

A fault is healed by the step that its finding asks for, or, one time in four, only by the next; what no step heals a
person mends here, and asks for the node to be judged again.
"""

import random
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from flightline.healing.journal.incident import DONE as STEP_DONE
from flightline.healing.journal.incident import Incident, Moment, advance
from flightline.healing.journal.ledger import SqliteLedger
from flightline.healing.journal.machine import EventKind, NodeState
from flightline.healing.journal.stamps import now_utc
from flightline.healing.plan.observe import from_marker
from flightline.healing.site import SitePolicy
from flightline.healing.steps.ports import NodeFacts, Ports, StepOutcome, Verified
from flightline.healing.steps.slurm import SlurmScheduler
from flightline_node.model import Remedy
from tests.beds import until

from .control import Running, controller
from .fleet import Watched

STEPS = (Remedy.RESTART_APP, Remedy.RESET_GPU, Remedy.REBOOT)
GROUP = "p5.48xlarge"
POLICY = SitePolicy(window_h=0.0, budget_percent=100.0, breaker_percent=100.0)
"""Faults come a thousand times as often here as in life: the same node is soon sick again of something else."""
WAVE_S = 120.0


@dataclass
class Nodes:
    """The nodes' side of the controller. sick: who has a fault now, and which step heals it; None: only a person."""

    watched: Mapping[str, Watched]
    pick: random.Random
    sick: dict[str, Remedy | None] = field(default_factory=dict)
    boots: Counter[str] = field(default_factory=Counter)
    runs: int = 0

    def facts(self, hosts: Collection[str], token: int) -> Mapping[str, NodeFacts]:
        return {host: NodeFacts(f"boot-{self.boots[host]}", self.watched[host].marker()) for host in hosts}

    def reach(self, asked: object, token: int) -> dict[str, dict[str, str]]:
        return {}

    def repair(self, host: str, step: Remedy, incident: Incident) -> StepOutcome:
        wanted = self.sick.get(host)
        if wanted is not None and STEPS.index(wanted) <= STEPS.index(step):
            del self.sick[host]
        self.boots[host] += step is Remedy.REBOOT
        return StepOutcome(STEP_DONE)

    def release(self, host: str, run: str, token: int, judged_at: str) -> None:
        self.watched[host].release(run, "--judged-at", judged_at)

    def prove(self, hosts: Collection[str], level: str) -> dict[str, Verified]:
        self.runs += 1
        return {host: Verified(host not in self.sick, f"proof-{self.runs}", at=now_utc()) for host in hosts}


@dataclass
class CountedSlurm(SlurmScheduler):
    """Notes who is returned, and in what state."""

    nodes: Nodes | None = None
    returned: int = 0
    returned_sick: int = 0

    def resume(self, host: str) -> None:
        assert self.nodes is not None
        self.returned += 1
        self.returned_sick += host in self.nodes.sick
        super().resume(host)


class Healer:
    """One controller; heal() goes on until the nodes of a wave serve again."""

    def __init__(self, store: Path, watched: Mapping[str, Watched], pick: random.Random) -> None:
        self.store, self.nodes = store, Nodes(watched, pick)
        self.slurm = CountedSlurm(nodes=self.nodes)
        self.held = self.stranded = 0

    def heal(self, sick: Collection[str]) -> None:
        for host in sick:
            marker = self.nodes.watched[host].marker() or {}
            self.nodes.sick[host] = self._healed_by([one["remedy"] for one in marker.get("findings", ())])
        until(
            lambda: self._round() or not any(place.out for place in self.slurm.places(sick).values()), WAVE_S, every_s=0
        )
        self.stranded += sum(place.out for place in self.slurm.places(sick).values())

    def _healed_by(self, remedies: list[str]) -> Remedy | None:
        if not remedies or not {Remedy(one) for one in remedies} <= set(STEPS):
            return None
        first = max(STEPS.index(Remedy(one)) for one in remedies)
        return STEPS[min(first + (self.nodes.pick.random() < 0.25), len(STEPS) - 1)]

    def _round(self) -> None:
        groups = dict.fromkeys(self.nodes.watched, GROUP)
        markers = {host: one.marker() for host, one in self.nodes.watched.items()}
        seen = [from_marker(host, GROUP, marker) for host, marker in markers.items() if marker]
        with controller(
            self.store, None, Running(), POLICY, ports=Ports(self.slurm, self.nodes, self.nodes)
        ) as healing:
            healing.round(seen, groups)
        with SqliteLedger(self.store) as ledger:
            for one in ledger.incidents(only_open=True):
                if one.state is NodeState.HELD:
                    self.held += 1
                    self.nodes.sick.pop(one.host, None)
                    ledger.save(advance(one, Moment(now_utc(), EventKind.RETRIED, "a person", "mended by hand")), None)
