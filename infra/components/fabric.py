"""The security group of the nodes: everything between its members, nothing in from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from .base import child, named

OUTWARD = (("https", "tcp", 443), ("http", "tcp", 80), ("time", "udp", 123))
"""Packages, container images and AWS' services; Ubuntu's archive still answers on port 80 only; time."""


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
        self._name, self._args = name, args
        self.group = aws.ec2.SecurityGroup(
            f"{name}-group",
            description="Nodes: everything among themselves",
            vpc_id=args.vpc_id,
            tags=named(args.tags, f"{args.cluster}-fabric"),
            opts=child(self),
        )
        self.id = self.group.id
        self._among_themselves()
        for key, protocol, port in OUTWARD:
            self._outward(key, protocol, port)
        for cidr in args.ssh_cidrs:
            self._ssh(cidr)
        self.register_outputs({"security_group_id": self.group.id})

    def _among_themselves(self) -> None:
        aws.vpc.SecurityGroupIngressRule(
            f"{self._name}-self-in",
            security_group_id=self.group.id,
            referenced_security_group_id=self.group.id,
            description="Everything from members of this group",
            ip_protocol="-1",
            tags=dict(self._args.tags),
            opts=child(self),
        )
        aws.vpc.SecurityGroupEgressRule(
            f"{self._name}-self-out",
            security_group_id=self.group.id,
            referenced_security_group_id=self.group.id,
            description="Everything to members of this group",
            ip_protocol="-1",
            tags=dict(self._args.tags),
            opts=child(self),
        )

    def _outward(self, key: str, protocol: str, port: int) -> None:
        aws.vpc.SecurityGroupEgressRule(
            f"{self._name}-{key}-out",
            security_group_id=self.group.id,
            description=f"Out: {key}",
            ip_protocol=protocol,
            from_port=port,
            to_port=port,
            cidr_ipv4="0.0.0.0/0",
            tags=dict(self._args.tags),
            opts=child(self),
        )

    def _ssh(self, cidr: str) -> None:
        aws.vpc.SecurityGroupIngressRule(
            f"{self._name}-ssh-{cidr}",
            security_group_id=self.group.id,
            description="SSH from a range that the stack names",
            ip_protocol="tcp",
            from_port=22,
            to_port=22,
            cidr_ipv4=cidr,
            tags=dict(self._args.tags),
            opts=child(self),
        )
