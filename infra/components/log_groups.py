"""Log groups that nodes and file systems write to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from .base import child


@dataclass(frozen=True)
class LogGroupsArgs:
    """groups: key -> physical name."""

    groups: Mapping[str, str]
    retention_days: int
    tags: Mapping[str, str]


class LogGroups(pulumi.ComponentResource):
    """Made here, with a retention, because a group that a writer makes for itself never forgets."""

    def __init__(self, name: str, args: LogGroupsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:LogGroups", name, {}, opts)
        self.groups = {
            key: aws.cloudwatch.LogGroup(
                f"{name}-{key}",
                name=group,
                retention_in_days=args.retention_days,
                tags=dict(args.tags),
                opts=child(self),
            )
            for key, group in args.groups.items()
        }
        self.register_outputs({"names": list(args.groups.values())})
