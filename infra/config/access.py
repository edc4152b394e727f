"""How people and Ansible reach the nodes, and the head node."""

from __future__ import annotations

import re

from infra.config.draft import Draft
from infra.config.model import Access, Head
from infra.planning import subnets

MODES = ("ssm", "ssh")
ORCHESTRATORS = ("none", "slurm")
WIDEST_PUBLIC_PREFIX = 16
"""A wider public block is nobody's office; blocks side by side could add up to the whole internet."""


def read(draft: Draft) -> Access:
    """The access settings."""
    mode = draft.one_of("accessMode", MODES)
    cidrs, key = draft.items("sshCidrs"), draft.text("sshKeyName")
    if mode == "ssh":
        if not cidrs:
            draft.refuse("sshCidrs", 'the blocks that may connect, such as ["203.0.113.0/24"], with accessMode ssh')
        for cidr in cidrs:
            _block(draft, cidr)
        if not re.fullmatch(r"[ -~]{1,255}", key):
            draft.refuse("sshKeyName", "the name of an EC2 key pair, with accessMode ssh")
    elif mode == "ssm":
        if cidrs:
            draft.refuse("sshCidrs", "nothing with accessMode ssm, which opens no port")
        if key:
            draft.refuse("sshKeyName", "nothing with accessMode ssm, which uses no key")
    return Access(mode, cidrs, key or None)


def _block(draft: Draft, cidr: str) -> None:
    try:
        block = subnets.parse(cidr)
    except ValueError as error:
        draft.refuse("sshCidrs", str(error), cidr)
        return
    inside = any(block.subnet_of(private) for private in subnets.PRIVATE_RANGES)
    if not inside and block.prefixlen < WIDEST_PUBLIC_PREFIX:
        draft.refuse("sshCidrs", f"a block no wider than /{WIDEST_PUBLIC_PREFIX}; SSH is never open to the world", cidr)


def orchestrator(draft: Draft) -> str:
    """What schedules jobs."""
    choice = draft.text("orchestrator")
    if choice == "eks":
        draft.refuse("orchestrator", "none or slurm; eks is reserved and not built")
        return choice
    return draft.one_of("orchestrator", ORCHESTRATORS)


def head(draft: Draft) -> Head:
    """The head node; Slurm brings one."""
    return Head(
        enabled=draft.flag("headNode") or draft.text("orchestrator") == "slurm",
        instance_type=draft.matching(
            "headInstanceType",
            r"[a-z][a-z0-9-]*\.(metal(-\d+xl)?|[a-z0-9]+)",
            "an EC2 type such as m7i.xlarge",
        ),
        root_volume_gib=draft.within("headRootVolumeGib", 30, 16384, "GiB"),
    )
