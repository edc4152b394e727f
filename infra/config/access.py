"""How people and Ansible reach the nodes, and the head node."""

import re

from infra.config.model import EKS, AccessSettings, HeadSettings
from infra.config.values import Values
from infra.planning import subnets
from infra.planning.instance_types import architecture_of

WIDEST_PUBLIC_PREFIX = 16
"""A wider public block is nobody's office; blocks side by side could add up to the whole internet."""


def read(values: Values) -> AccessSettings:
    """The access settings."""
    given = AccessSettings(**values.section(AccessSettings))
    mode, cidrs, key = given.mode, given.ssh_cidrs, given.ssh_key_name
    if mode == "ssh":
        if not cidrs:
            values.refuse("sshCidrs", 'the blocks that may connect, such as ["203.0.113.0/24"], with accessMode ssh')
        private = [_private(values, cidr) for cidr in cidrs]
        if cidrs and not any(private) and not head_wanted(values) and not values.refused("sshCidrs"):
            values.refuse("sshCidrs", "a private block (a VPN's), or headNode true: GPU nodes have no public address")
        if not re.fullmatch(r"[ -~]{1,255}", key or ""):
            values.refuse("sshKeyName", "the name of an EC2 key pair, with accessMode ssh")
    elif mode == "ssm":
        if cidrs:
            values.refuse("sshCidrs", "nothing with accessMode ssm, which opens no port")
        if key:
            values.refuse("sshKeyName", "nothing with accessMode ssm, which uses no key")
    return given


def _private(values: Values, cidr: str) -> bool:
    """Whether a block is private; one that may not connect is refused."""
    try:
        block = subnets.parse(cidr)
    except ValueError as error:
        values.refuse("sshCidrs", str(error), cidr)
        return False
    inside = subnets.private(block)
    if not inside and block.prefixlen < WIDEST_PUBLIC_PREFIX:
        values.refuse(
            "sshCidrs", f"a block no wider than /{WIDEST_PUBLIC_PREFIX}; SSH is never open to the world", cidr
        )
    return inside


def head_wanted(values: Values) -> bool:
    """Whether there is a head node; Slurm brings one, and Kubernetes has its own control plane."""
    chosen = values.text("orchestrator")
    return chosen == "slurm" or (values.flag("headNode") and chosen != EKS)


def orchestrator(values: Values) -> str:
    """What schedules jobs."""
    return str(values.checked("orchestrator"))


def head(values: Values, architecture: str | None) -> HeadSettings:
    """The head node. architecture: of the GPU nodes, whose image it runs; None: not known."""
    given = HeadSettings(enabled=head_wanted(values), **values.section(HeadSettings))
    own = architecture_of(given.instance_type)
    if given.enabled and architecture not in (None, own) and not values.refused("headInstanceType"):
        example = {"arm64": "m7g.xlarge", "x86_64": "m7i.xlarge"}[str(architecture)]
        values.refuse("headInstanceType", f"a type for {architecture} such as {example}: it runs the GPU nodes' image")
    return given
