"""Where EC2 says that instances stand in its network: DescribeInstanceTopology and the placement group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

MOST_IDS = 100
"""Of a request, of both operations. Source: EC2 API reference, DescribeInstanceTopology."""


@dataclass(frozen=True)
class Stand:
    """One instance. network_nodes: from the top of the network to the instance's own; empty where EC2 tells none."""

    network_nodes: tuple[str, ...] = ()
    placement_group: str = ""


def stands(instance_ids: Sequence[str], client: Any) -> dict[str, Stand]:
    """Each instance that EC2 knows. client: boto3's for ec2. Raises botocore's errors."""
    nodes: dict[str, tuple[str, ...]] = {}
    groups: dict[str, str] = {}
    for at in range(0, len(instance_ids), MOST_IDS):
        ids = list(instance_ids[at : at + MOST_IDS])
        for one in _pages(client.describe_instance_topology, "Instances", InstanceIds=ids):
            nodes[one["InstanceId"]] = tuple(one.get("NetworkNodes") or ())
            groups[one["InstanceId"]] = str(one.get("GroupName") or "")
    return {name: Stand(nodes[name], groups[name]) for name in nodes}


def _pages(ask: Any, key: str, **given: Any) -> Iterable[dict[str, Any]]:
    token = ""
    while True:
        answer = ask(**given, **({"NextToken": token} if token else {}))
        yield from answer.get(key) or ()
        token = answer.get("NextToken") or ""
        if not token:
            return
