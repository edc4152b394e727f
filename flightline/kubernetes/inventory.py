"""An Ansible inventory of a cluster's GPU nodes, from what its API says of them. Pure.

What a node should be comes from the cloud's label of its instance type and the hardware table, not from the node.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from flightline_node.know.expected import resolve, unsourced
from flightline_node.model import SettingsError

from ..contract import KUBE_TYPE_LABEL
from .nodes import KubeObject, instance_of, is_gpu_node, labels

ZONE_LABEL = "topology.kubernetes.io/zone"
NETWORK_LABELS = tuple(f"topology.k8s.aws/network-node-layer-{layer}" for layer in (3, 2, 1))
"""EC2's instance topology as the cloud's controller writes it, the switch nearest to the node first."""
VIA = "kubernetes"
"""Who asks these nodes: the launcher of that name."""


def of_nodes(nodes: Sequence[KubeObject]) -> dict[str, Any]:
    """The inventory as plain data, hosts in order of their names. Raises SettingsError where there is no GPU node."""
    found = sorted((node for node in nodes if is_accelerated(node)), key=lambda node: str(node["metadata"]["name"]))
    if not found:
        raise SettingsError(
            f"saw {len(nodes)} nodes in the cluster and no GPU node among them; wanted nodes of a GPU instance type "
            f"({KUBE_TYPE_LABEL}); do: kubectl get nodes -L {KUBE_TYPE_LABEL}, or another context of kubectl"
        )
    groups: dict[str, dict[str, Any]] = {}
    for node in found:
        for group in _groups(node):
            groups.setdefault(group, {"hosts": {}})["hosts"][node["metadata"]["name"]] = {}
    hosts = {str(node["metadata"]["name"]): _variables(node) for node in found}
    return {"all": {"vars": {"flightline_via": VIA}, "hosts": hosts, "children": dict(sorted(groups.items()))}}


def is_accelerated(node: KubeObject) -> bool:
    """A GPU node by its label, else by its instance type: one that nobody labelled has no agent, and that is a row."""
    if is_gpu_node(node):
        return True
    try:
        return bool(resolve(labels(node).get(KUBE_TYPE_LABEL)).accelerator)
    except SettingsError:  # one of a family without a row yet is a row that is refused
        return bool(unsourced(str(labels(node).get(KUBE_TYPE_LABEL))))


def _variables(node: KubeObject) -> dict[str, Any]:
    own = labels(node)
    addresses = {one.get("type"): one.get("address") for one in (node.get("status") or {}).get("addresses") or []}
    given = {
        "instance_type": own.get(KUBE_TYPE_LABEL),
        "instance_id": instance_of(node),
        "node_address": addresses.get("InternalIP"),
        "flightline_place": next((own[name] for name in (*NETWORK_LABELS, ZONE_LABEL) if own.get(name)), None),
    }
    return {name: value for name, value in given.items() if value}


def _groups(node: KubeObject) -> list[str]:
    own = labels(node)
    named = (("type", own.get(KUBE_TYPE_LABEL)), ("zone", own.get(ZONE_LABEL)))
    # Ansible takes letters, digits and underscores in a group's name.
    return ["gpu_nodes", *(f"{kind}_{re.sub(r'[^A-Za-z0-9]', '_', name)}" for kind, name in named if name)]
