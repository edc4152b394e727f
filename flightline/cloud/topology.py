"""Where EC2 says that instances stand in its network: DescribeInstanceTopology and the placement group."""

from __future__ import annotations

from collections.abc import Sequence
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
    found: dict[str, Stand] = {}
    for at in range(0, len(instance_ids), MOST_IDS):
        ids = list(instance_ids[at : at + MOST_IDS])
        for page in client.get_paginator("describe_instance_topology").paginate(InstanceIds=ids):
            for one in page.get("Instances") or ():
                place = Stand(tuple(one.get("NetworkNodes") or ()), str(one.get("GroupName") or ""))
                found[one["InstanceId"]] = place
    return found
