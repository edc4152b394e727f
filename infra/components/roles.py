"""Roles with one inline policy per purpose, from the planned documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.planning import iam
from infra.planning.names import Names, Place

from .base import child, text

_ANY_KEY = "arn:aws:kms:us-east-1:000000000000:key/00000000-0000-0000-0000-000000000000"


def by_purpose(
    key_arn: pulumi.Input[str], documents: Callable[[str], Mapping[str, iam.Document]]
) -> dict[str, pulumi.Input[str]]:
    """Policies that may name the key of the alerts. Which there are is known before it is."""

    def writer(purpose: str) -> Callable[[str], str]:
        return lambda arn: text(documents(arn)[purpose])

    return {purpose: pulumi.Output.from_input(key_arn).apply(writer(purpose)) for purpose in documents(_ANY_KEY)}


@dataclass(frozen=True)
class RoleMaker:
    """What every role of a stack shares."""

    names: Names
    place: Place
    permissions_boundary: str | None
    tags: Mapping[str, str]

    def role(
        self,
        parent: pulumi.Resource,
        name: str,
        physical_name: str,
        trust: iam.Document,
        policies: Mapping[str, pulumi.Input[str]] | None = None,
        managed: tuple[str, ...] = (),
        suffix: str = "",
    ) -> tuple[aws.iam.Role, list[pulumi.Resource]]:
        """A role, and what gives it its rights: whoever uses it waits for those. policies: inline ones by purpose."""
        role = aws.iam.Role(
            f"{name}{suffix}",
            name=physical_name,
            assume_role_policy=text(trust),
            permissions_boundary=self.permissions_boundary,
            tags=dict(self.tags),
            opts=child(parent),
        )
        rights: list[pulumi.Resource] = [
            aws.iam.RolePolicy(f"{name}-{purpose}", name=purpose, role=role.name, policy=policy, opts=child(parent))
            for purpose, policy in (policies or {}).items()
        ]
        rights += [
            aws.iam.RolePolicyAttachment(
                f"{name}-{policy.rsplit('/', 1)[-1]}",
                role=role.name,
                policy_arn=f"arn:{self.place.partition}:iam::aws:policy/{policy}",
                opts=child(parent),
            )
            for policy in managed
        ]
        return role, rights
