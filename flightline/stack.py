"""What a stack promises its hosts: the outputs it exports and the tags its instances carry (flightline/contract.py).

Hosts of inventory/aws_ec2.yml bring both; an inventory written by hand has neither and is not asked for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from flightline import contract

OUTPUTS = "flightline_stack"
TAGS = "ec2_tags"
FACTS = ("instance_type", "ec2_instance_type", "ec2_placement")
RELINK = "run `make outputs`"
AMAZON_USER = "ec2-user"
"""The login of Amazon Linux images; Ubuntu's is ubuntu, Debian's admin (EC2 user guide)."""
NO_SLURM = (
    "orchestrator slurm on Amazon Linux (node_user ec2-user): its repositories have no Slurm, and the role slurm takes "
    "the distribution's; set orchestrator none, or an image of Ubuntu or Debian"
)


def outputs_mistakes(outputs: Any) -> list[str]:
    """What is missing or wrong in the stack's outputs."""
    if not isinstance(outputs, Mapping):
        return [f"{OUTPUTS}: not set, wanted the outputs of the stack that made these hosts; {RELINK}"]
    return [f"{OUTPUTS}.{mistake}; {RELINK}" for mistake in contract.mistakes(outputs)]


def configure_mistakes(outputs: Any) -> list[str]:
    """What the roles cannot do for a stack although AWS can build it."""
    if not isinstance(outputs, Mapping):
        return []
    amazon = outputs.get("node_user") == AMAZON_USER and outputs.get("orchestrator") == "slurm"
    return [NO_SLURM] if amazon else []


def absent(hosts: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Nodes that a stack has and the inventory does not list: {host, instance_type, message} of each.

    hosts: OUTPUTS and TAGS of every host of the whole inventory. A node that was never launched stalls a job as a
    broken one does, and no list of hosts shows it.
    """
    stacks: dict[str, Mapping[str, Any]] = {}
    listed: Counter[str] = Counter()
    for given in hosts:
        outputs, tags = given[OUTPUTS], given[TAGS]
        if isinstance(outputs, Mapping) and isinstance(tags, Mapping):
            cluster = str(outputs.get("cluster_name"))
            stacks[cluster] = outputs
            listed[cluster] += tags.get(contract.TAG_ROLE) == contract.ROLE_GPU
    found = []
    for cluster, outputs in stacks.items():
        count = str(outputs.get("node_count"))
        wanted, seen = int(count) if count.isdecimal() else 0, listed[cluster]
        message = f"the stack has {wanted} GPU nodes ({OUTPUTS}.node_count), {seen} are listed"
        kind = str(outputs.get("instance_type") or "")
        names = (f"{cluster}-absent-{number}" for number in range(1, wanted - seen + 1))
        found += [{"host": name, "instance_type": kind, "message": message} for name in names]
    return found


def host_mistakes(outputs: Any, given: Mapping[str, Any]) -> Iterable[str]:
    """Where a host is not what its stack says it is. given: the host's TAGS and FACTS."""
    tags = given[TAGS]
    if not isinstance(tags, Mapping):
        yield f"{TAGS}: saw {tags!r}, wanted the instance's tags"
        return
    for name in contract.INSTANCE_TAGS:
        if not tags.get(name):
            yield f"tag {name}: missing on the instance; wanted what flightline/contract.py promises: `make up` sets it"
    role = tags.get(contract.TAG_ROLE)
    if role and role not in contract.ROLES:
        yield f"tag {contract.TAG_ROLE}: saw {role!r}, wanted one of {', '.join(contract.ROLES)}"
    if role not in (contract.ROLE_HEAD, contract.ROLE_CPU) and given["ec2_instance_type"] != given["instance_type"]:
        declared, real = given["instance_type"], given["ec2_instance_type"]
        yield f"instance_type: EC2 says {real!r}, the stack declared {declared!r}"
    if isinstance(outputs, Mapping):
        yield from _against_outputs(outputs, tags, given, role == contract.ROLE_GPU)


def _against_outputs(
    outputs: Mapping[str, Any], tags: Mapping[str, Any], given: Mapping[str, Any], gpu: bool
) -> Iterable[str]:
    pairs = [("tag " + contract.TAG_CLUSTER, tags.get(contract.TAG_CLUSTER), "cluster_name")]
    pairs += [("tag " + contract.TAG_STACK, tags.get(contract.TAG_STACK), "stack")]
    if gpu:
        pairs += [("instance_type", given["ec2_instance_type"], "instance_type")]
        pairs += [("tag " + contract.TAG_EFA_COUNT, tags.get(contract.TAG_EFA_COUNT), "efa_count")]
        pairs += [("zone", (given["ec2_placement"] or {}).get("availability_zone"), "gpu_zone")]
    for name, seen, output in pairs:
        wanted = outputs.get(output)
        if seen not in (None, "") and wanted not in (None, "") and str(seen) != str(wanted):
            yield f"{name}: saw {seen!r}, wanted {wanted!r} ({OUTPUTS}.{output}); {RELINK} or `make up`"
