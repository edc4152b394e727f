"""Flow logs of what the VPC refused, in a log group that forgets."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.planning import iam

from .base import child, text
from .roles import RoleMaker


@dataclass(frozen=True)
class FlowLogsArgs:
    """Where they go and how long they stay."""

    vpc_id: pulumi.Input[str]
    maker: RoleMaker
    retention_days: int


class FlowLogs(pulumi.ComponentResource):
    """Refused traffic only: it shows a wrong security group. What is let through would be terabytes of training."""

    def __init__(self, name: str, args: FlowLogsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:FlowLogs", name, {}, opts)
        names, place, tags = args.maker.names, args.maker.place, dict(args.maker.tags)
        self.group = aws.cloudwatch.LogGroup(
            f"{name}-log",
            name=names.flow_log_group,
            retention_in_days=args.retention_days,
            tags=tags,
            opts=child(self),
        )
        self.role, rights = args.maker.role(
            self,
            name,
            names.flow_log_role,
            iam.trust("vpc-flow-logs.amazonaws.com", place),
            {"write": text(iam.flow_log_policy(names, place))},
            suffix="-role",
        )
        aws.ec2.FlowLog(
            f"{name}-vpc",
            vpc_id=args.vpc_id,
            traffic_type="REJECT",
            log_destination_type="cloud-watch-logs",
            log_destination=place.arn("logs", f"log-group:{names.flow_log_group}"),
            iam_role_arn=self.role.arn,
            tags=tags,
            opts=child(self, depends_on=[self.group, *rights]),
        )
        self.register_outputs({"log_group": self.group.name})
