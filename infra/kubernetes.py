"""Settings become an EKS cluster: which component gets which setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pulumi

from flightline import contract
from infra.components.add_ons import AddOns, AddOnsArgs
from infra.components.charts import Charts, ChartsArgs
from infra.components.kubernetes_cluster import KubernetesCluster, KubernetesClusterArgs
from infra.components.kubernetes_nodes import KubernetesGpuNodes, KubernetesNodesArgs, KubernetesSystemNodes
from infra.components.node_role import NodeRole, NodeRoleArgs
from infra.components.pod_roles import PodRoles, PodRolesArgs
from infra.planning import charts, kubernetes, tags

if TYPE_CHECKING:
    from infra.cluster import ClusterPlan
    from infra.components.network import Network


@dataclass(frozen=True)
class KubernetesFoundation:
    """What the cluster stands on. ready: what must be there before a node is."""

    network: Network
    fabric_group_id: pulumi.Output[str]
    topic_key_arn: pulumi.Output[str]
    ready: Sequence[pulumi.Resource]


class Kubernetes:
    """The components of a Kubernetes cluster. Its GPU nodes come and go; the rest is ground."""

    def __init__(self, plan: ClusterPlan, on: KubernetesFoundation) -> None:
        self._plan, self._on = plan, on
        settings = plan.settings
        self._maker = plan.maker
        chosen = settings.kubernetes
        add_ons = kubernetes.add_ons(chosen.pods_per_node, plan.tags, chosen.add_on_versions)
        self.cluster = self._cluster()
        self.node_role = NodeRole("node-role", NodeRoleArgs(self._maker))
        self.early = self._add_ons("early", [one for one in add_ons if one.early])
        self.system = KubernetesSystemNodes("system", self._nodes_args(contract.ROLE_CPU))
        self.add_ons = self._add_ons("add-ons", [one for one in add_ons if not one.early], [self.system])
        self.pods = self._pods()
        self.charts = self._charts() if settings.kubernetes.charts else None
        self.nodes = KubernetesGpuNodes("nodes", self._nodes_args(contract.ROLE_GPU))

    @property
    def foundation(self) -> list[pulumi.Resource]:
        """All but the GPU nodes."""
        made = [self.cluster, self.node_role, self.early, self.system, self.add_ons, self.pods, self.charts]
        return [part for part in made if part is not None]

    def _cluster(self) -> KubernetesCluster:
        plan = self._plan
        return KubernetesCluster(
            "kubernetes",
            KubernetesClusterArgs(
                settings=plan.settings.kubernetes,
                maker=self._maker,
                subnet_ids=self._on.network.private_subnet_ids,
                retention_days=plan.settings.monitoring.log_retention_days,
            ),
        )

    def _add_ons(self, name: str, chosen: Sequence[kubernetes.AddOn], ready: Sequence[pulumi.Resource] = ()) -> AddOns:
        return AddOns(name, AddOnsArgs(chosen, self._maker, self.cluster.name, ready))

    def _nodes_args(self, role: str) -> KubernetesNodesArgs:
        plan, network, settings = self._plan, self._on.network, self._plan.settings
        wide = role == contract.ROLE_CPU or settings.nodes.spot.zones > 1
        return KubernetesNodesArgs(
            nodes=settings.nodes,
            kubernetes=settings.kubernetes,
            names=plan.names,
            cluster_name=self.cluster.name,
            role_arn=self.node_role.arn,
            security_group_ids=[self._on.fabric_group_id, self.cluster.security_group_id],
            subnet_ids=network.private_subnet_ids if wide else network.gpu_subnet_ids,
            tags=plan.tags,
            instance_tags=tags.instance_tags(settings, plan.stack, role),
            ready=[*self._on.ready, self.node_role, self.early],
        )

    def _charts(self) -> Charts:
        settings = self._plan.settings
        ready = [self.cluster, self.system, self.add_ons]
        return Charts("charts", ChartsArgs(charts.charts(settings.nodes), self.cluster, settings.region, ready))

    def _pods(self) -> PodRoles:
        settings = self._plan.settings
        return PodRoles(
            "pods",
            PodRolesArgs(
                maker=self._maker,
                cluster_name=self.cluster.name,
                s3_express=settings.storage.s3_express,
                slack=settings.notifications.slack,
                topic_key_arn=self._on.topic_key_arn,
            ),
        )
