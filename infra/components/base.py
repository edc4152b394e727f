"""What components share: options of children, documents as text, rules of security groups."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws


def child(parent: pulumi.Resource, **options: Any) -> pulumi.ResourceOptions:
    """Options of a component's child."""
    return pulumi.ResourceOptions(parent=parent, **options)


def data(parent: pulumi.Resource, keep: bool, **options: Any) -> pulumi.ResourceOptions:
    """Options of a child that holds data: while it is to be kept, Pulumi neither replaces nor deletes it."""
    return pulumi.ResourceOptions(parent=parent, protect=keep, retain_on_delete=keep, **options)


def text(document: Mapping[str, Any]) -> str:
    """A policy document as JSON, the same text on every run."""
    return json.dumps(document, sort_keys=True)


def rule(
    parent: pulumi.Resource,
    name: str,
    group_id: pulumi.Input[str],
    description: str,
    tags: Mapping[str, str],
    *,
    protocol: str = "tcp",
    ports: tuple[int, int] | None = None,
    **other_side: pulumi.Input[str],
) -> pulumi.Resource:
    """A rule of a security group: outward where its name ends in -out. ports: first and last; None for all.

    other_side: `cidr_ipv4` or `referenced_security_group_id`.
    """
    kind = aws.vpc.SecurityGroupEgressRule if name.endswith("-out") else aws.vpc.SecurityGroupIngressRule
    first, last = ports or (None, None)
    return kind(
        name,
        security_group_id=group_id,
        description=description,
        ip_protocol=protocol,
        from_port=first,
        to_port=last,
        tags=dict(tags),
        opts=child(parent),
        **other_side,
    )


def named(tags: Mapping[str, str], name: str) -> dict[str, str]:
    """Tags with the Name that consoles show."""
    return {**tags, "Name": name}
