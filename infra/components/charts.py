"""Helm releases in an EKS cluster, made from the machine that runs Pulumi: it must reach the cluster's API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes import Provider
from pulumi_kubernetes.helm.v3 import Release, RepositoryOptsArgs

from infra.planning import charts as plans

from .base import child
from .kubernetes_cluster import KubernetesCluster

TIMEOUT_S = 900
"""What a release may take: images come from public registries."""


@dataclass(frozen=True)
class ChartsArgs:
    """ready: what releases need: nodes without a GPU, the DNS, and the administrators' access."""

    charts: Sequence[plans.Chart]
    cluster: KubernetesCluster
    region: str
    ready: Sequence[pulumi.Resource]


class Charts(pulumi.ComponentResource):
    """Device plug-ins, DCGM exporter, Prometheus: each as its makers ship it."""

    def __init__(self, name: str, args: ChartsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:Charts", name, {}, opts)
        self._name, self._args = name, args
        cluster = args.cluster
        config = pulumi.Output.all(cluster.name, cluster.endpoint, cluster.authority).apply(
            lambda found: plans.kubeconfig(str(found[0]), str(found[1]), str(found[2]), args.region)
        )
        self._provider = Provider(f"{name}-api", kubeconfig=config, opts=child(self, depends_on=list(args.ready)))
        self.releases: dict[str, Release] = {}
        for chart in args.charts:
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
            opts=child(self, provider=self._provider, depends_on=[*self._args.ready, *needed]),
        )
