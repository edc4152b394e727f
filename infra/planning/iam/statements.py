"""Statements and documents, and the ARNs that they name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infra.planning.names import Names, Place

Document = Mapping[str, Any]
Condition = Mapping[str, Mapping[str, Any]]

VERSION = "2012-10-17"
EVERYTHING = ("*",)
"""For actions that take no resource; a test refuses it for all others."""

WRITE_LOGS = ("logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents")


def of(service: str, *operations: str) -> tuple[str, ...]:
    """Actions of one service."""
    return tuple(f"{service}:{operation}" for operation in operations)


def allow(
    sid: str, actions: Sequence[str], resources: Sequence[str] = EVERYTHING, condition: Condition | None = None
) -> dict[str, Any]:
    """One statement that allows actions."""
    statement: dict[str, Any] = {
        "Sid": sid,
        "Effect": "Allow",
        "Action": sorted(actions),
        "Resource": list(resources),
    }
    return {**statement, "Condition": condition} if condition else statement


def document(*statements: Mapping[str, Any]) -> Document:
    """A policy document."""
    return {"Version": VERSION, "Statement": [dict(statement) for statement in statements]}


@dataclass(frozen=True)
class Arns:
    """ARNs of a stack's resources, from its planned names."""

    names: Names
    place: Place

    def bucket(self, name: str) -> str:
        """A bucket."""
        return f"arn:{self.place.partition}:s3:::{name}"

    def objects(self, bucket: str, prefix: str = "") -> str:
        """Every object of a bucket under a prefix."""
        return f"{self.bucket(bucket)}/{prefix}*"

    def directory_bucket(self) -> str:
        """The S3 Express bucket."""
        return self.place.arn("s3express", f"bucket/{self.names.express_bucket}")

    def table(self, name: str) -> tuple[str, str]:
        """A table and its indexes."""
        table = self.place.arn("dynamodb", f"table/{name}")
        return table, f"{table}/index/*"

    def topic(self) -> str:
        """The alerts topic."""
        return self.place.arn("sns", self.names.alerts_topic)

    def secret(self) -> str:
        """The Slack webhook's secret; Secrets Manager adds six characters to the name."""
        return self.place.arn("secretsmanager", f"secret:{self.names.slack_secret}-??????")

    def queue(self, name: str) -> str:
        """A queue."""
        return self.place.arn("sqs", name)

    def log_group(self, name: str) -> tuple[str, str]:
        """A log group and its streams; CloudWatch Logs compares with either, depending on the call."""
        group = self.place.arn("logs", f"log-group:{name}")
        return group, f"{group}:*"

    def log_streams(self, group: str, prefix: str) -> str:
        """The streams of a group whose names begin so."""
        return self.place.arn("logs", f"log-group:{group}:log-stream:{prefix}*")

    def node_group(self) -> str:
        """The Auto Scaling group; the middle part of its ARN is made by AWS."""
        return self.place.arn("autoscaling", f"autoScalingGroup:*:autoScalingGroupName/{self.names.node_group}")

    def managed_node_group(self) -> str:
        """The Auto Scaling group that EKS makes for the GPU nodes: its prefix, the node group's name, an id."""
        group = f"autoScalingGroupName/eks-{self.names.node_group}-*"
        return self.place.arn("autoscaling", f"autoScalingGroup:*:{group}")

    def instances(self) -> str:
        """Every instance of the account and region; always with a condition on the cluster's tag."""
        return self.place.arn("ec2", "instance/*")

    def aws_document(self, name: str) -> str:
        """An SSM document that AWS owns."""
        return f"arn:{self.place.partition}:ssm:{self.place.region}::document/{name}"

    def own_document(self, name: str) -> str:
        """An SSM document of this account."""
        return self.place.arn("ssm", f"document/{name}")
