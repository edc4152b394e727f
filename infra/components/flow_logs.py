"""Flow logs of what the VPC refused, in a log group that forgets."""

import pulumi
import pulumi_aws as aws

from infra.planning import iam

from .base import ClusterPlan, Component, text


class FlowLogs(Component):
    """Refused traffic only: it shows a wrong security group. What is let through would be terabytes of training."""

    def __init__(self, name: str, plan: ClusterPlan, parent: pulumi.Resource, vpc_id: pulumi.Input[str]) -> None:
        super().__init__(name, plan, parent)
        names, place = plan.names, plan.place
        self.group = self.log_group("log", names.flow_log_group)
        trust = iam.trust("vpc-flow-logs.amazonaws.com", place)
        write = {"write": text(iam.flow_log_policy(names, place))}
        role, rights = self.role("", names.flow_log_role, trust, write, suffix="-role")
        aws.ec2.FlowLog(
            f"{name}-vpc",
            vpc_id=vpc_id,
            traffic_type="REJECT",
            log_destination_type="cloud-watch-logs",
            log_destination=place.arn("logs", f"log-group:{names.flow_log_group}"),
            iam_role_arn=role.arn,
            tags=self.tags(),
            opts=self.child(depends_on=[self.group, *rights]),
        )
        self.register_outputs({"log_group": self.group.name})
