"""Helm releases in an EKS cluster, made from the machine that runs Pulumi: it must reach the cluster's API."""

from collections.abc import Sequence

import pulumi
from pulumi_kubernetes import Provider
from pulumi_kubernetes.helm.v3 import Release, RepositoryOptsArgs

from infra.planning import charts as plans

from .base import ClusterPlan, Component
from .kubernetes_cluster import KubernetesCluster

TIMEOUT_S = 900
"""What a release may take: images come from public registries."""


class Charts(Component):
    """Device plug-ins, DCGM exporter, Prometheus: each as its makers ship it."""

    def __init__(
        self, name: str, plan: ClusterPlan, cluster: KubernetesCluster, ready: Sequence[pulumi.Resource]
    ) -> None:
        """ready: what releases need: nodes without a GPU, the DNS, and the administrators' access."""
        super().__init__(name, plan)
        self._ready = ready
        config = pulumi.Output.all(cluster.name, cluster.endpoint, cluster.authority).apply(
            lambda found: plans.kubeconfig(str(found[0]), str(found[1]), str(found[2]), plan.settings.region)
        )
        self._provider = Provider(f"{name}-api", kubeconfig=config, opts=self.child(depends_on=list(ready)))
        self.releases: dict[str, Release] = {}
        for chart in plans.charts(plan.settings.nodes):
            self.releases[chart.name] = self._release(chart)
        self.register_outputs({"releases": list(self.releases)})

    def _release(self, chart: plans.Chart) -> Release:
        needed = [self.releases[chart.needs]] if chart.needs else []
        return Release(
            f"{self._name}-{chart.name}",
            name=chart.name,
            chart=chart.name,
            version=chart.version,
            repository_opts=RepositoryOptsArgs(repo=chart.repository),
            namespace=chart.namespace,
            create_namespace=True,
            values=dict(chart.values),
            # Half of a release is none; what is left of a failed one would be in the next one's way.
            atomic=True,
            timeout=TIMEOUT_S,
            opts=self.child(provider=self._provider, depends_on=[*self._ready, *needed]),
        )
