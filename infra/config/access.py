"""How people and Ansible reach the nodes, and the head node."""

from __future__ import annotations

import re

from infra.config.draft import Draft
from infra.config.model import Access, Head
from infra.planning import subnets

MODES = ("ssm", "ssh")
ORCHESTRATORS = ("none", "slurm")
GRAVITON = r"a1\.|[a-z]+\d+[a-z]*g[a-z]*\."
"""A g behind the generation's number: m7g, c7gn, x2gd. EC2 user guide, naming conventions of instance types."""

WIDEST_PUBLIC_PREFIX = 16
"""A wider public block is nobody's office; blocks side by side could add up to the whole internet."""


def read(draft: Draft) -> Access:
    """The access settings."""
    mode = draft.one_of("accessMode", MODES)
    cidrs, key = draft.items("sshCidrs"), draft.text("sshKeyName")
    if mode == "ssh":
        if not cidrs:
            draft.refuse("sshCidrs", 'the blocks that may connect, such as ["203.0.113.0/24"], with accessMode ssh')
        private = [_private(draft, cidr) for cidr in cidrs]
        if cidrs and not any(private) and not head_wanted(draft) and not draft.refused("sshCidrs"):
            draft.refuse("sshCidrs", "a private block (a VPN's), or headNode true: GPU nodes have no public address")
        if not re.fullmatch(r"[ -~]{1,255}", key):
            draft.refuse("sshKeyName", "the name of an EC2 key pair, with accessMode ssh")
    elif mode == "ssm":
        if cidrs:
            draft.refuse("sshCidrs", "nothing with accessMode ssm, which opens no port")
        if key:
            draft.refuse("sshKeyName", "nothing with accessMode ssm, which uses no key")
    return Access(mode, cidrs, key or None)


def _private(draft: Draft, cidr: str) -> bool:
    """Whether a block is private; one that may not connect is refused."""
    try:
        block = subnets.parse(cidr)
    except ValueError as error:
        draft.refuse("sshCidrs", str(error), cidr)
        return False
    inside = any(block.subnet_of(private) for private in subnets.PRIVATE_RANGES)
    if not inside and block.prefixlen < WIDEST_PUBLIC_PREFIX:
        draft.refuse("sshCidrs", f"a block no wider than /{WIDEST_PUBLIC_PREFIX}; SSH is never open to the world", cidr)
    return inside


def head_wanted(draft: Draft) -> bool:
    """Whether there is a head node; Slurm brings one."""
    return draft.flag("headNode") or draft.text("orchestrator") == "slurm"


def orchestrator(draft: Draft) -> str:
    """What schedules jobs."""
    choice = draft.text("orchestrator")
    if choice == "eks":
        draft.refuse("orchestrator", "none or slurm; eks is reserved and not built")
        return choice
    return draft.one_of("orchestrator", ORCHESTRATORS)


def head(draft: Draft, architecture: str | None) -> Head:
    """The head node. architecture: of the GPU nodes, whose image it runs; None: not known."""
    enabled = head_wanted(draft)
    chosen = draft.matching(
        "headInstanceType", r"[a-z][a-z0-9-]*\.(metal(-\d+xl)?|[a-z0-9]+)", "an EC2 type such as m7i.xlarge"
    )
    own = "arm64" if re.match(GRAVITON, chosen) else "x86_64"
    if enabled and architecture not in (None, own) and not draft.refused("headInstanceType"):
        example = {"arm64": "m7g.xlarge", "x86_64": "m7i.xlarge"}[str(architecture)]
        draft.refuse("headInstanceType", f"a type for {architecture} such as {example}: it runs the GPU nodes' image")
    return Head(enabled, chosen, draft.within("headRootVolumeGib", 30, 16384, "GiB"))
