"""Roles of the nodes: one inline policy per purpose, from the planned documents."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.planning import iam
from infra.planning.names import Names, Place

from .base import child, text

Documents = Callable[[Names, Place, str], dict[str, iam.Document]]


@dataclass(frozen=True)
class AccessArgs:
    """topic_key_arn: the key of the alerts topic, which a node must use to publish.

    head: there is a head node. s3_express: nodes use the directory bucket. slack: the webhook's secret is there.
    """

    head: bool
    s3_express: bool
    slack: bool
    permissions_boundary: str | None
    names: Names
    place: Place
    topic_key_arn: pulumi.Input[str]
    tags: Mapping[str, str]


class Access(pulumi.ComponentResource):
    """The GPU nodes' role and profile, and the head node's where there is one."""

    def __init__(self, name: str, args: AccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:Access", name, {}, opts)
        self._name, self._args = name, args
        names = args.names
        node = functools.partial(iam.node_policies, args.s3_express)
        self.node_profile = self._profile("gpu-node", names.node_role, names.node_profile, node)
        self.head_profile: aws.iam.InstanceProfile | None = None
        if args.head:
            head = functools.partial(iam.head_policies, args.slack)
            self.head_profile = self._profile("head-node", names.head_role, names.head_profile, head)
        self.register_outputs({"node_profile": self.node_profile.name})

    def _profile(self, key: str, role_name: str, profile_name: str, documents: Documents) -> aws.iam.InstanceProfile:
        role = aws.iam.Role(
            f"{self._name}-{key}",
            name=role_name,
            assume_role_policy=text(iam.trust("ec2.amazonaws.com", self._args.place)),
            permissions_boundary=self._args.permissions_boundary,
            tags=dict(self._args.tags),
            opts=child(self),
        )
        for purpose in self._documents(documents, ""):
            aws.iam.RolePolicy(
                f"{self._name}-{key}-{purpose}",
                name=purpose,
                role=role.name,
                policy=pulumi.Output.from_input(self._args.topic_key_arn).apply(self._document(documents, purpose)),
                opts=child(self),
            )
        return aws.iam.InstanceProfile(
            f"{self._name}-{key}-profile",
            name=profile_name,
            role=role.name,
            tags=dict(self._args.tags),
            opts=child(self),
        )

    def _documents(self, documents: Documents, key_arn: str) -> dict[str, iam.Document]:
        # Which purposes there are does not depend on the key, so logical names are known before it is.
        return documents(self._args.names, self._args.place, key_arn or _ANY_KEY)

    def _document(self, documents: Documents, purpose: str) -> Callable[[str], str]:
        return lambda key_arn: text(self._documents(documents, key_arn)[purpose])


_ANY_KEY = "arn:aws:kms:us-east-1:000000000000:key/00000000-0000-0000-0000-000000000000"
