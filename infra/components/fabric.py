"""The security group of the nodes: everything between its members, nothing in from elsewhere."""

import pulumi

from .base import ClusterPlan, Component

OUTWARD = (("https", "tcp", 443), ("http", "tcp", 80), ("time", "udp", 123))
"""Packages, container images and AWS' services; Ubuntu's archive still answers on port 80 only; time."""

ANYWHERE = "0.0.0.0/0"


class Fabric(Component):
    """EFA asks for all traffic from and to the group itself, in and out.

    A rule for a range of addresses does not do: ParallelCluster's validator accepts only the group's own id.
    """

    def __init__(self, name: str, plan: ClusterPlan, vpc_id: pulumi.Input[str]) -> None:
        super().__init__(name, plan)
        self.group = self.security_group("group", "Nodes: everything among themselves", vpc_id, "fabric")
        self.id = self.group.id
        for side, word in (("in", "from"), ("out", "to")):
            said = f"Everything {word} members of this group"
            self.rule(f"self-{side}", self.id, said, protocol="-1", referenced_security_group_id=self.id)
        for key, protocol, port in OUTWARD:
            ports = (port, port)
            self.rule(f"{key}-out", self.id, f"Out: {key}", protocol=protocol, ports=ports, cidr_ipv4=ANYWHERE)
        # With a head node people come in through it; the nodes let only members of their group in.
        for cidr in () if plan.settings.head.enabled else plan.settings.access.ssh_cidrs:
            said = "SSH from a range that the stack names"
            self.rule(f"ssh-{cidr}", self.id, said, ports=(22, 22), cidr_ipv4=cidr)
        self.register_outputs({"security_group_id": self.group.id})
