"""Which Node is which host. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..contract import KUBE_GPU_LABEL, KUBE_LABEL_TRUE

KubeObject = Mapping[str, Any]


def by_host(nodes: Sequence[KubeObject], hosts: Collection[str]) -> dict[str, KubeObject]:
    """Host -> Node: by its name, else by an address or the EC2 instance id where only one has it."""
    known = by_any_name(nodes)
    return {host: known[host] for host in hosts if host in known}


def by_any_name(nodes: Sequence[KubeObject]) -> dict[str, KubeObject]:
    """All that a Node can be called without doubt -> the Node; its name goes before another's address."""
    by_other: dict[str, list[KubeObject]] = {}
    for node in nodes:
        for other in others(node):
            by_other.setdefault(other, []).append(node)
    sole = {other: same[0] for other, same in by_other.items() if len(same) == 1}
    return {**sole, **{str(node["metadata"]["name"]): node for node in nodes}}


def others(node: KubeObject) -> set[str]:
    """What a Node is called beside its name: addresses, and the end of its provider id (aws:///ZONE/INSTANCE)."""
    addresses = {str(one.get("address")) for one in (node.get("status") or {}).get("addresses") or []}
    return {*addresses, instance_of(node)} - {""}


def instance_of(node: KubeObject) -> str:
    """The EC2 instance id at the end of a Node's provider id; "" where it has none."""
    return str((node.get("spec") or {}).get("providerID") or "").rpartition("/")[2]


def labels(node: KubeObject) -> Mapping[str, str]:
    """A Node's labels."""
    return node["metadata"].get("labels") or {}


def is_gpu_node(node: KubeObject) -> bool:
    """Is it labelled as one that the agent's DaemonSet runs on?"""
    return labels(node).get(KUBE_GPU_LABEL) == KUBE_LABEL_TRUE
