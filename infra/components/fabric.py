"""The security group of the nodes: everything between its members, nothing in from elsewhere."""

from dataclasses import dataclass

import pulumi

from .base import ClusterPlan, Component

OUTWARD = (("https", "tcp", 443), ("http", "tcp", 80), ("time", "udp", 123))
"""Packages, container images and AWS' services; Ubuntu's archive still answers on port 80 only; time."""

ANYWHERE = "0.0.0.0/0"


@dataclass(frozen=True, kw_only=True)
class FabricArgs:
    """vpc_id: where a group is made. security_group_id: one that is there, taken with the rules that it has."""

    vpc_id: pulumi.Input[str] | None = None
    security_group_id: pulumi.Input[str] | None = None


class Fabric(Component):
    """EFA asks for all traffic from and to the group itself, in and out.

    A rule for a range of addresses does not do: ParallelCluster's validator accepts only the group's own id.
    """

    def __init__(
        self, name: str, plan: ClusterPlan, args: FabricArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, plan, opts=opts)
        if args.vpc_id is not None and args.security_group_id is None:
            self.id = self._make(plan, args.vpc_id)
        elif args.security_group_id is not None and args.vpc_id is None:
            self.id = pulumi.Output.from_input(args.security_group_id)
        else:
            saw = "both vpc_id and security_group_id" if args.vpc_id else "neither vpc_id nor security_group_id"
            self.refuse(saw, "one of them", "name the VPC to make a group in it, or the group that is there")
        self.register_outputs({"security_group_id": self.id})

    def _make(self, plan: ClusterPlan, vpc_id: pulumi.Input[str]) -> pulumi.Output[str]:
        group = self.security_group("group", "Nodes: everything among themselves", vpc_id, "fabric")
        for side, word in (("in", "from"), ("out", "to")):
            said = f"Everything {word} members of this group"
            self.rule(f"self-{side}", group.id, said, protocol="-1", referenced_security_group_id=group.id)
        for key, protocol, port in OUTWARD:
            ports = (port, port)
            self.rule(f"{key}-out", group.id, f"Out: {key}", protocol=protocol, ports=ports, cidr_ipv4=ANYWHERE)
        # With a head node people come in through it; the nodes let only members of their group in.
        for cidr in () if plan.settings.head.enabled else plan.settings.access.ssh_cidrs:
            said = "SSH from a range that the stack names"
            self.rule(f"ssh-{cidr}", group.id, said, ports=(22, 22), cidr_ipv4=cidr)
        return group.id
