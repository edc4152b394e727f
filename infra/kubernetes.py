"""Settings become an EKS cluster: which component gets which setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pulumi

from flightline import contract
from infra.components.add_ons import AddOns
from infra.components.base import ClusterPlan
from infra.components.charts import Charts
from infra.components.kubernetes_cluster import KubernetesCluster
from infra.components.kubernetes_nodes import KubernetesGpuNodes, KubernetesNodesArgs, KubernetesSystemNodes
from infra.components.node_role import NodeRole
from infra.components.pod_roles import PodRoles
from infra.planning import kubernetes

if TYPE_CHECKING:
    from infra.components.network import Network


@dataclass(frozen=True)
class KubernetesFoundation:
    """What the cluster stands on. cluster: one that is made already. ready: what must be there before a node is."""

    network: Network
    fabric_group_id: pulumi.Output[str]
    topic_key_arn: pulumi.Output[str]
    ready: Sequence[pulumi.Resource]
    cluster: KubernetesCluster | None = None


class Kubernetes:
    """The components of a Kubernetes cluster. Its GPU nodes come and go; the rest is ground.

    In a cluster that is there already only GPU nodes and the roles of this project's pods are made: add-ons (the Pod
    Identity agent among them), charts and nodes for its own pods are its owner's.
    """

    def __init__(self, plan: ClusterPlan, on: KubernetesFoundation) -> None:
        self._plan, self._on = plan, on
        chosen = plan.settings.kubernetes
        self.cluster = on.cluster or KubernetesCluster(plan.part("kubernetes"), plan, on.network.private_subnet_ids)
        self.node_role = NodeRole(plan.part("node-role"), plan)
        self.early: AddOns | None = None
        self.system: KubernetesSystemNodes | None = None
        self.add_ons: AddOns | None = None
        self.charts: Charts | None = None
        if not chosen.cluster:
            self._furnish()
        self.pods = PodRoles(plan.part("pods"), plan, self.cluster.name, on.topic_key_arn)
        self.nodes = KubernetesGpuNodes(plan.part("nodes"), plan, self._nodes_args(contract.ROLE_GPU))

    def _furnish(self) -> None:
        """What a new cluster needs before it serves anybody."""
        plan, chosen = self._plan, self._plan.settings.kubernetes
        add_ons = kubernetes.add_ons(chosen.pods_per_node, plan.tags, chosen.add_on_versions)
        self.early = self._add_ons("early", [one for one in add_ons if one.early])
        self.system = KubernetesSystemNodes(plan.part("system"), plan, self._nodes_args(contract.ROLE_CPU))
        self.add_ons = self._add_ons("add-ons", [one for one in add_ons if not one.early], [self.system])
        if chosen.charts:
            ready = [self.cluster, self.system, self.add_ons]
            self.charts = Charts(plan.part("charts"), plan, self.cluster, ready)

    @property
    def foundation(self) -> list[pulumi.Resource]:
        """All but the GPU nodes."""
        made = [self.cluster, self.node_role, self.early, self.system, self.add_ons, self.pods, self.charts]
        return [part for part in made if part is not None]

    def _add_ons(self, name: str, chosen: Sequence[kubernetes.AddOn], ready: Sequence[pulumi.Resource] = ()) -> AddOns:
        return AddOns(self._plan.part(name), self._plan, chosen, self.cluster.name, ready)

    def _nodes_args(self, role: str) -> KubernetesNodesArgs:
        network = self._on.network
        wide = role == contract.ROLE_CPU
        return KubernetesNodesArgs(
            cluster_name=self.cluster.name,
            role_arn=self.node_role.arn,
            security_group_ids=[self._on.fabric_group_id, self.cluster.security_group_id],
            subnet_ids=network.private_subnet_ids if wide else network.gpu_subnet_ids,
            ready=[*self._on.ready, self.node_role, *([self.early] if self.early else [])],
        )
