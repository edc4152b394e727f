"""The security group of the nodes: everything between its members, nothing in from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from .base import child, named, rule

OUTWARD = (("https", "tcp", 443), ("http", "tcp", 80), ("time", "udp", 123))
"""Packages, container images and AWS' services; Ubuntu's archive still answers on port 80 only; time."""

ANYWHERE = "0.0.0.0/0"


@dataclass(frozen=True)
class FabricArgs:
    """ssh_cidrs: ranges that may reach the nodes over SSH; empty with Session Manager or behind a head node."""

    vpc_id: pulumi.Input[str]
    cluster: str
    tags: Mapping[str, str]
    ssh_cidrs: tuple[str, ...] = ()


class Fabric(pulumi.ComponentResource):
    """EFA asks for all traffic from and to the group itself, in and out.

    A rule for a range of addresses does not do: ParallelCluster's validator accepts only the group's own id.
    """

    def __init__(self, name: str, args: FabricArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:Fabric", name, {}, opts)
        self.group = aws.ec2.SecurityGroup(
            f"{name}-group",
            description="Nodes: everything among themselves",
            vpc_id=args.vpc_id,
            tags=named(args.tags, f"{args.cluster}-fabric"),
            opts=child(self),
        )
        self.id = self.group.id
        own = args.tags
        for side, word in (("in", "from"), ("out", "to")):
            said = f"Everything {word} members of this group"
            rule(self, f"{name}-self-{side}", self.id, said, own, protocol="-1", referenced_security_group_id=self.id)
        for key, protocol, port in OUTWARD:
            ports = (port, port)
            rule(
                self,
                f"{name}-{key}-out",
                self.id,
                f"Out: {key}",
                own,
                protocol=protocol,
                ports=ports,
                cidr_ipv4=ANYWHERE,
            )
        for cidr in args.ssh_cidrs:
            said = "SSH from a range that the stack names"
            rule(self, f"{name}-ssh-{cidr}", self.id, said, own, ports=(22, 22), cidr_ipv4=cidr)
        self.register_outputs({"security_group_id": self.group.id})
