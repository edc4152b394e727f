"""The two namespaces: the agent's, which is privileged, and the workloads', which has a quota and closed doors."""

from __future__ import annotations

from typing import Any

from ..contract import KUBE_EFA_RESOURCE, KUBE_GPU_RESOURCE, KUBE_NAMESPACE, KUBE_TRAINING_NAMESPACE
from .objects import Manifest, manifest
from .site import KubeSite

ADMISSION = "pod-security.kubernetes.io"


def manifests(site: KubeSite) -> list[Manifest]:
    """Namespaces, then what bounds them."""
    return [
        _namespace(KUBE_NAMESPACE, enforce="privileged", warn="privileged"),
        # A GPU job needs devices and huge pages, and no privilege: EFA and NVIDIA come by their device plugins.
        _namespace(KUBE_TRAINING_NAMESPACE, enforce="baseline", warn="restricted"),
        _quota(site),
        *_network(KUBE_NAMESPACE, among_themselves=False),
        *_network(KUBE_TRAINING_NAMESPACE, among_themselves=True),
    ]


def _namespace(name: str, enforce: str, warn: str) -> Manifest:
    labels = {f"{ADMISSION}/enforce": enforce, f"{ADMISSION}/warn": warn, f"{ADMISSION}/audit": warn}
    return manifest("v1", "Namespace", name, {}, None, labels=labels)


def _quota(site: KubeSite) -> Manifest:
    """All GPUs and EFA interfaces of the stack, no more: a pod that can never run is refused and does not wait."""
    hard: dict[str, Any] = {f"requests.{KUBE_GPU_RESOURCE}": str(site.nodes * site.gpus)}
    if site.efas:
        hard[f"requests.{KUBE_EFA_RESOURCE}"] = str(site.nodes * site.efas)
    hard |= {"count/jobs.batch": "200", "services.loadbalancers": "0", "services.nodeports": "0"}
    return manifest("v1", "ResourceQuota", "training", {"spec": {"hard": hard}}, KUBE_TRAINING_NAMESPACE)


def _network(namespace: str, among_themselves: bool) -> list[Manifest]:
    """Nothing comes in from elsewhere. Ranks talk to each other, over EFA past every policy.

    What goes out: names, and HTTPS for S3 and the API server; Lustre (988, 1018 to 1023) is the node's, not the pod's.
    """
    api = "networking.k8s.io/v1"
    names = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    out = [{"ports": names}, {"ports": [{"protocol": "TCP", "port": 443}]}]
    peers: list[dict[str, Any]] = [{"podSelector": {}}]
    both = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    policies: dict[str, dict[str, Any]] = {
        "closed": both,
        "names-and-https": {"podSelector": {}, "policyTypes": ["Egress"], "egress": out},
    }
    if among_themselves:
        policies["among-themselves"] = {**both, "ingress": [{"from": peers}], "egress": [{"to": peers}]}
    return [manifest(api, "NetworkPolicy", name, {"spec": spec}, namespace) for name, spec in policies.items()]
