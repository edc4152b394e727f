"""Flow logs of what the VPC refused, in a log group that forgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.planning import iam
from infra.planning.names import Names, Place

from .base import child, text


@dataclass(frozen=True)
class FlowLogsArgs:
    """Where they go and how long they stay."""

    vpc_id: pulumi.Input[str]
    names: Names
    place: Place
    retention_days: int
    tags: Mapping[str, str]
    permissions_boundary: str | None = None


class FlowLogs(pulumi.ComponentResource):
    """Refused traffic only: it shows a wrong security group. What is let through would be terabytes of training."""

    def __init__(self, name: str, args: FlowLogsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:FlowLogs", name, {}, opts)
        self.group = aws.cloudwatch.LogGroup(
            f"{name}-log",
            name=args.names.flow_log_group,
            retention_in_days=args.retention_days,
            tags=dict(args.tags),
            opts=child(self),
        )
        self.role, policy = self._role(name, args)
        aws.ec2.FlowLog(
            f"{name}-vpc",
            vpc_id=args.vpc_id,
            traffic_type="REJECT",
            log_destination_type="cloud-watch-logs",
            log_destination=args.place.arn("logs", f"log-group:{args.names.flow_log_group}"),
            iam_role_arn=self.role.arn,
            tags=dict(args.tags),
            opts=child(self, depends_on=[self.group, policy]),
        )
        self.register_outputs({"log_group": self.group.name})

    def _role(self, name: str, args: FlowLogsArgs) -> tuple[aws.iam.Role, aws.iam.RolePolicy]:
        role = aws.iam.Role(
            f"{name}-role",
            name=args.names.flow_log_role,
            assume_role_policy=text(iam.trust("vpc-flow-logs.amazonaws.com", args.place)),
            permissions_boundary=args.permissions_boundary,
            tags=dict(args.tags),
            opts=child(self),
        )
        policy = aws.iam.RolePolicy(
            f"{name}-write",
            name="write",
            role=role.name,
            policy=text(iam.flow_log_policy(args.names, args.place)),
            opts=child(self),
        )
        return role, policy
