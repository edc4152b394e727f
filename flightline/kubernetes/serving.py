"""A vLLM service on proven nodes: probes, a disruption budget, who may ask it, and replicas as requests wait for them.

vLLM: OpenAI's API and /health on one port, metrics under /metrics (its documentation, "OpenAI-Compatible Server" and
"Production Metrics"). The number of waiting requests comes from Prometheus by prometheus-adapter as a metric of pods.
"""

from __future__ import annotations

from typing import Any

from ..contract import KUBE_GPU_RESOURCE, KUBE_LABEL_TRUE, KUBE_TRAINING_NAMESPACE
from .objects import Manifest, manifest
from .site import KubeSite
from .training import gpu_pod

NAME = "vllm"
PORT = 8000
CLIENT_LABEL = "flightline/inference-client"
"""On namespaces whose pods may ask."""
MONITORING = "monitoring"
WAITING = "vllm_num_requests_waiting"
"""The pods' metric, as prometheus-adapter names vllm:num_requests_waiting (infra/planning/charts.py)."""
WAITING_WANTED = "4"
LOAD_S = 3600
"""A model of hundreds of GB from object storage."""
_WHERE = KUBE_TRAINING_NAMESPACE
_POD = {"app.kubernetes.io/name": NAME}


def manifests(site: KubeSite) -> list[Manifest]:
    """Nothing without an image. Its GPUs count against the quota of the training namespace."""
    if not site.serving_image:
        return []
    port = {"name": "http", "port": PORT, "targetPort": "http"}
    return [
        manifest("apps/v1", "Deployment", NAME, {"spec": _deployment(site)}, _WHERE),
        manifest("v1", "Service", NAME, {"spec": {"selector": _POD, "ports": [port]}}, _WHERE),
        manifest("policy/v1", "PodDisruptionBudget", NAME,
                 {"spec": {"maxUnavailable": 1, "selector": {"matchLabels": _POD}}}, _WHERE),
        manifest("autoscaling/v2", "HorizontalPodAutoscaler", NAME, {"spec": _scaling(site)}, _WHERE),
        manifest("networking.k8s.io/v1", "NetworkPolicy", NAME, {"spec": _asked_by()}, _WHERE),
        manifest("monitoring.coreos.com/v1", "PodMonitor", NAME, {"spec": {
            "selector": {"matchLabels": _POD}, "podMetricsEndpoints": [{"port": "http", "interval": "15s"}]}}, _WHERE),
    ]  # fmt: skip


def _scaling(site: KubeSite) -> dict[str, Any]:
    metric = {"metric": {"name": WAITING}, "target": {"type": "AverageValue", "averageValue": WAITING_WANTED}}
    return {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
        "minReplicas": 1,
        "maxReplicas": site.nodes * (site.gpus // site.serving_gpus) or 1,
        "metrics": [{"type": "Pods", "pods": metric}],
        # A replica takes minutes to load its model: it is not given up for a lull.
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 1800}},
    }


def _asked_by() -> dict[str, Any]:
    clients = {"namespaceSelector": {"matchLabels": {CLIENT_LABEL: KUBE_LABEL_TRUE}}}
    scraper = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": MONITORING}}}
    rule = {"from": [clients, scraper], "ports": [{"protocol": "TCP", "port": PORT}]}
    return {"podSelector": {"matchLabels": _POD}, "policyTypes": ["Ingress"], "ingress": [rule]}


def _deployment(site: KubeSite) -> dict[str, Any]:
    grace = {"terminationGracePeriodSeconds": 120}
    # Replicas are the autoscaler's: a manifest that names them would set them back. A node's GPUs may all be taken, so
    # the old pod goes first.
    return {
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        "progressDeadlineSeconds": LOAD_S + 600,
        "selector": {"matchLabels": _POD},
        "template": {"metadata": {"labels": _POD}, "spec": gpu_pod(site, _server(site), "16Gi", {}, grace)},
    }


def _server(site: KubeSite) -> dict[str, Any]:
    share = max(site.gpus // site.serving_gpus, 1)
    resources = {
        KUBE_GPU_RESOURCE: str(site.serving_gpus),
        "cpu": str(max(int((site.expected.vcpus or 16) * 0.8) // share, 1)),
        "memory": f"{max(int((site.expected.memory_mib or 0) * 0.8) // share, 16_384)}Mi",
    }
    health = {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 10, "timeoutSeconds": 5}
    cache = "/fsx/models" if site.fsx_dns and site.fsx_mount else "/tmp/models"  # noqa: S108  # in the container
    return {
        "name": NAME,
        "image": site.serving_image,
        "command": ["vllm", "serve", site.serving_model],
        "args": ["--host=0.0.0.0", f"--port={PORT}", f"--tensor-parallel-size={site.serving_gpus}"],
        "env": [{"name": "HF_HOME", "value": cache}, {"name": "AWS_REGION", "value": site.region}],
        "ports": [{"name": "http", "containerPort": PORT}],
        "startupProbe": {**health, "failureThreshold": LOAD_S // 10},
        "readinessProbe": {**health, "failureThreshold": 3},
        "livenessProbe": {**health, "failureThreshold": 6},
        "resources": {"requests": resources, "limits": dict(resources)},
        "securityContext": {"allowPrivilegeEscalation": False},
    }
