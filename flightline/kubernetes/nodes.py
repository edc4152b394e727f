"""What kubectl lists, and which Node is which host. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..contract import KUBE_GPU_LABEL, KUBE_LABEL_TRUE

KubeObject = Mapping[str, Any]
_ANY = "*"
_TEXTS = {_ANY: str}
_SHAPE = {
    "metadata": {"name": str, "namespace": str, "labels": _TEXTS, "annotations": _TEXTS, "ownerReferences": [dict]},
    "spec": {
        "nodeName": str,
        "providerID": str,
        "taints": [dict],
        "volumes": [{"name": str, "configMap": dict}],
        "containers": [{"resources": {"limits": dict}}],
    },
    "status": {"phase": str, "addresses": [_TEXTS]},
}
"""Of what is read of Nodes and pods: what it is where it is there."""


def listed(text: str | bytes) -> list[KubeObject]:
    """The objects of `kubectl get -o json`. Raises ValueError where one is no object with a name and a spec."""
    try:
        found = list(json.loads(text)["items"])
    except (KeyError, TypeError, RecursionError):
        raise ValueError("no list") from None
    for number, one in enumerate(found):
        if not (_fits(one, _SHAPE) and (one.get("metadata") or {}).get("name") and isinstance(one.get("spec"), dict)):
            raise ValueError(f"the object {number + 1} of {len(found)} has no name and spec, or fields of another kind")
    return found


def _fits(value: Any, shape: Any) -> bool:
    if isinstance(shape, type):
        return isinstance(value, shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(one, shape[0]) for one in value)
    return isinstance(value, dict) and all(
        one is None or _fits(one, shape.get(name) or shape.get(_ANY) or object) for name, one in value.items()
    )


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
