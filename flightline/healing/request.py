"""What a person asked of healing: which run, nodes and scheduler, under which settings; and who answers to that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..run import cluster_inventory
from ..run.playbooks import sources
from ..store.sqlite import default_path, is_aws
from .plan.seen import LastSeen
from .site import SitePolicy
from .steps import slurm
from .steps.kubernetes import KubernetesScheduler
from .steps.kubernetes_nodes import KubernetesNodes
from .steps.nodes import AnsibleNodes
from .steps.ports import Scheduler

SCHEDULERS = ("auto", "slurm", "kubernetes", "none")


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


def file_of(asked: HealingRequest) -> Path:
    """Where proofs are kept: runs go to a file first, also when incidents are in AWS."""
    return Path(asked.store).expanduser().absolute() if asked.store and not is_aws(asked.store) else default_path()


def inventory_of(asked: HealingRequest, seen: LastSeen) -> tuple[str, ...]:
    """As asked for, or the run's, or the site's own."""
    return asked.named(seen.run.inventory) or tuple(str(Path(part).absolute()) for part in sources(()))


def nodes_of(inventory: tuple[str, ...]) -> AnsibleNodes:
    """Who takes steps on the nodes of an inventory."""
    return KubernetesNodes(inventory) if _is_kubernetes(inventory) else AnsibleNodes(inventory)
