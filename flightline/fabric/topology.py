"""Where the nodes stand: near ones beside each other in the ring, and who is outside the placement group. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

HostVars = Mapping[str, Mapping[str, Any]]


def ids_of(hosts: HostVars) -> dict[str, str]:
    """Instance id -> host, of the hosts whose place the inventory does not give."""
    named = {
        str(given.get("instance_id") or ""): host for host, given in hosts.items() if not given.get("network_nodes")
    }
    return {name: host for name, host in named.items() if name.startswith("i-")}


def networks(hosts: HostVars) -> dict[str, list[str]]:
    """Host -> its network nodes from the top down; none where they are not known."""
    return {host: [str(node) for node in given.get("network_nodes") or ()] for host, given in hosts.items()}


def placement_group(given: Mapping[str, Any]) -> str:
    """A host's placement group: as the inventory says, else as the aws_ec2 plugin found it; '' where it is in none."""
    of_ec2 = given.get("ec2_placement")
    named = of_ec2.get("group_name") if isinstance(of_ec2, Mapping) else ""
    return str(given.get("placement_group") or named or "")


def outside(hosts: HostVars) -> dict[str, str]:
    """Host -> why it stands apart: most of the others share a placement group that it is not in."""
    groups = {host: placement_group(given) for host, given in hosts.items()}
    usual, count = Counter(groups.values()).most_common(1)[0] if groups else ("", 0)
    if not usual or count * 2 <= len(groups):
        return {}
    return {
        host: f"placement group {group or 'none'}, {count} of {len(groups)} nodes are in {usual}"
        for host, group in groups.items()
        if group != usual
    }
