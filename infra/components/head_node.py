"""The head node: Slurm controller, control node, and the way in with SSH."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.config.model import HeadSettings

from .base import child, named, rule


@dataclass(frozen=True)
class HeadNodeArgs:
    """public: with SSH from given ranges it has a public address; with Session Manager it needs none."""

    settings: HeadSettings
    cluster: str
    image_id: pulumi.Input[str]
    vpc_id: pulumi.Input[str]
    subnet_id: pulumi.Input[str]
    fabric_group_id: pulumi.Input[str]
    profile_name: pulumi.Input[str]
    public: bool
    ssh_cidrs: tuple[str, ...]
    ssh_key_name: str | None
    tags: Mapping[str, str]
    instance_tags: Mapping[str, str]


class HeadNode(pulumi.ComponentResource):
    """One instance without a GPU, a member of the nodes' security group."""

    def __init__(self, name: str, args: HeadNodeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:HeadNode", name, {}, opts)
        self._name, self._args = name, args
        groups: list[pulumi.Input[str]] = [args.fabric_group_id]
        if args.ssh_cidrs:
            groups.append(self._access_group().id)
        self.instance = aws.ec2.Instance(
            f"{name}-instance",
            ami=args.image_id,
            instance_type=args.settings.instance_type,
            key_name=args.ssh_key_name,
            subnet_id=args.subnet_id,
            associate_public_ip_address=args.public,
            vpc_security_group_ids=groups,
            iam_instance_profile=args.profile_name,
            metadata_options=aws.ec2.InstanceMetadataOptionsArgs(
                http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=2
            ),
            root_block_device=aws.ec2.InstanceRootBlockDeviceArgs(
                encrypted=True, volume_type="gp3", volume_size=args.settings.root_volume_gib
            ),
            volume_tags=dict(args.instance_tags),
            tags=dict(args.instance_tags),
            # A newer image must not replace the controller under a running queue.
            opts=child(self, ignore_changes=["ami"]),
        )
        self.instance_id = self.instance.id
        self.register_outputs({"instance_id": self.instance.id})

    def _access_group(self) -> aws.ec2.SecurityGroup:
        group = aws.ec2.SecurityGroup(
            f"{self._name}-access",
            description="SSH to the head node from the ranges that the stack names",
            vpc_id=self._args.vpc_id,
            tags=named(self._args.tags, f"{self._args.cluster}-access"),
            opts=child(self),
        )
        for cidr in self._args.ssh_cidrs:
            ssh = f"{self._name}-ssh-{cidr}"
            rule(self, ssh, group.id, "SSH", self._args.tags, ports=(22, 22), cidr_ipv4=cidr)
        return group
