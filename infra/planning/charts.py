"""Helm charts of an EKS cluster, with pinned versions and what is said to each.

A version here is one that was seen published; whether it is still the newest cannot be looked up from a plan:
nvidia-device-plugin 0.19.2 (2026-05-27; 0.20.1 exists), aws-efa-k8s-device-plugin v0.5.29 (pull request 1338 of
aws/eks-charts, 2026-06-12; newer ones exist), dcgm-exporter 4.8.1 (2026; exporter 4.8.4 exists), kube-prometheus-stack
85.1.3 (2026-05), prometheus-adapter 5.3.0 (2026-02-19; 5.4.0 exists).
The names in `values` are those of the charts' values.yaml (NVIDIA/k8s-device-plugin, aws/eks-charts,
NVIDIA/dcgm-exporter).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flightline import contract
from flightline.kubernetes.serving import WAITING
from infra.config.model import NodesSettings

MONITORING = "monitoring"
PROMETHEUS = "kube-prometheus-stack"
_SYSTEM = "kube-system"
_EVERY_NODE = [{"operator": "Exists"}]
"""Also one that waits for its go, or lost it: the agent asks the GPUs that a plug-in has to have found."""

KEPT_DAYS = "15d"
STORE_GIB = 100
"""Of Prometheus: 1,000 nodes with 8 GPUs have some 300,000 series, 15 days of which take about 60 GB at 30 s."""

STORAGE_CLASS = "flightline-gp3"
ADAPTER = "prometheus-adapter"


@dataclass(frozen=True)
class Chart:
    """One release. repository: of charts, https. needs: the release whose kinds it uses, or empty."""

    name: str
    repository: str
    version: str
    namespace: str
    values: Mapping[str, Any]
    needs: str = ""


def charts(nodes: NodesSettings) -> tuple[Chart, ...]:
    """Every chart of a cluster; EFA's plug-in where nodes have EFA."""
    efa = (_efa(nodes),) if nodes.efa else ()
    return (_nvidia(), *efa, _prometheus(), _dcgm(), _adapter())


def _nvidia() -> Chart:
    # Its affinity is met by a label of the GPU nodes (planning.kubernetes.gpu_labels).
    return Chart(
        "nvidia-device-plugin",
        "https://nvidia.github.io/k8s-device-plugin",
        "0.19.2",
        _SYSTEM,
        {"tolerations": _EVERY_NODE, "nodeSelector": _on_gpu_nodes()},
    )


def _efa(nodes: NodesSettings) -> Chart:
    # The chart has a list of types of its own, which newer ones are not on.
    types = {"keys": [contract.KUBE_TYPE_LABEL], "values": list(nodes.types)}
    return Chart(
        "aws-efa-k8s-device-plugin",
        "https://aws.github.io/eks-charts",
        "v0.5.29",
        _SYSTEM,
        {"tolerations": _EVERY_NODE, "nodeSelector": _on_gpu_nodes(), "supportedInstanceLabels": types},
    )


def _prometheus() -> Chart:
    # Monitors and rules of other releases count as well: the agent's, DCGM's.
    found = dict.fromkeys(
        (
            "serviceMonitorSelectorNilUsesHelmValues",
            "podMonitorSelectorNilUsesHelmValues",
            "ruleSelectorNilUsesHelmValues",
        ),
        False,
    )
    return Chart(
        PROMETHEUS,
        "https://prometheus-community.github.io/helm-charts",
        "85.1.3",
        MONITORING,
        {
            "prometheus": {
                "prometheusSpec": {
                    **found,
                    "retention": KEPT_DAYS,
                    "retentionSize": f"{STORE_GIB * 9 // 10}GB",
                    "storageSpec": {"volumeClaimTemplate": {"spec": _claim()}},
                }
            },
            # EKS has no class of encrypted volumes of its own.
            "extraManifests": [_storage_class()],
            # Why a node was cordoned, for the dashboard.
            "kube-state-metrics": {"metricAnnotationsAllowList": ["nodes=[flightline/cordon]"]},
            # EKS' own control plane: nobody can scrape these.
            **{part: {"enabled": False} for part in ("kubeControllerManager", "kubeEtcd", "kubeScheduler")},
        },
    )


def _claim() -> dict[str, Any]:
    return {
        "storageClassName": STORAGE_CLASS,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": f"{STORE_GIB}Gi"}},
    }


def _storage_class() -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": STORAGE_CLASS},
        "provisioner": "ebs.csi.aws.com",
        "parameters": {"type": "gp3", "encrypted": "true"},
        # In the zone of the pod, once there is one.
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
    }


def _adapter() -> Chart:
    """The number of requests that wait for a vLLM pod, as a metric that an autoscaler can ask for."""
    rule = {
        "seriesQuery": 'vllm:num_requests_waiting{namespace!="",pod!=""}',
        "resources": {"overrides": {name: {"resource": name} for name in ("namespace", "pod")}},
        "name": {"as": WAITING},
        "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
    }
    return Chart(
        ADAPTER,
        "https://prometheus-community.github.io/helm-charts",
        "5.3.0",
        MONITORING,
        {
            "prometheus": {"url": f"http://{PROMETHEUS}-prometheus.{MONITORING}.svc", "port": 9090},
            "rules": {"default": False, "custom": [rule]},
        },
        needs=PROMETHEUS,
    )


def _dcgm() -> Chart:
    return Chart(
        "dcgm-exporter",
        "https://nvidia.github.io/dcgm-exporter/helm-charts",
        "4.8.1",
        MONITORING,
        {"tolerations": _EVERY_NODE, "nodeSelector": _on_gpu_nodes(), "serviceMonitor": {"enabled": True}},
        needs=PROMETHEUS,
    )


def _on_gpu_nodes() -> dict[str, str]:
    return {contract.KUBE_GPU_LABEL: contract.KUBE_LABEL_TRUE}


def kubeconfig(cluster: str, endpoint: str, authority: str, region: str) -> str:
    """How the API is asked: with a token that the AWS CLI makes at each call. It holds no secret."""
    made = ["--region", region, "eks", "get-token", "--cluster-name", cluster, "--output", "json"]
    ask = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "aws", "args": made}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"server": endpoint, "certificate-authority-data": authority}}],
        "users": [{"name": cluster, "user": {"exec": ask}}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": cluster}}],
        "current-context": cluster,
    }
    return json.dumps(config, sort_keys=True)
