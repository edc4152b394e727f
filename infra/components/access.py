"""Roles of the nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.planning import iam

from .base import child
from .roles import RoleMaker, by_purpose


@dataclass(frozen=True)
class AccessArgs:
    """topic_key_arn: the key of the alerts topic, which a node must use to publish.

    head: there is a head node. s3_express: nodes use the directory bucket. slack: the webhook's secret is there.
    """

    maker: RoleMaker
    head: bool
    s3_express: bool
    slack: bool
    topic_key_arn: pulumi.Input[str]


class Access(pulumi.ComponentResource):
    """The GPU nodes' role and profile, and the head node's where there is one."""

    def __init__(self, name: str, args: AccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:Access", name, {}, opts)
        self._name, self._args = name, args
        names, place = args.maker.names, args.maker.place
        self.node_profile = self._profile(
            "gpu-node",
            names.node_role,
            names.node_profile,
            lambda arn: iam.node_policies(args.s3_express, names, place, arn),
        )
        self.head_profile: aws.iam.InstanceProfile | None = None
        if args.head:
            self.head_profile = self._profile(
                "head-node",
                names.head_role,
                names.head_profile,
                lambda arn: iam.head_policies(args.slack, names, place, arn),
            )
        self.register_outputs({"node_profile": self.node_profile.name})

    def _profile(
        self, key: str, role_name: str, profile_name: str, documents: Callable[[str], dict[str, iam.Document]]
    ) -> aws.iam.InstanceProfile:
        maker = self._args.maker
        trust = iam.trust("ec2.amazonaws.com", maker.place)
        policies = by_purpose(self._args.topic_key_arn, documents)
        role, _ = maker.role(self, f"{self._name}-{key}", role_name, trust, policies)
        return aws.iam.InstanceProfile(
            f"{self._name}-{key}-profile",
            name=profile_name,
            role=role.name,
            tags=dict(maker.tags),
            opts=child(self),
        )
