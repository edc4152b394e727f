"""Which AWS services have a VPC endpoint, by the last part of the service's name.

A gateway costs nothing. Interfaces are paid for by the hour; without NAT they are the only way to their services.
"""

GATEWAYS = ("s3", "dynamodb")
EXPRESS_GATEWAY = "s3express"
"""Directory buckets are behind endpoints of their own (S3 user guide, networking for directory buckets)."""

OF_NODES = ("ssm", "ssmmessages", "ec2messages", "logs", "monitoring", "ec2")
"""Session Manager, and the CloudWatch agent (`ec2` for its dimensions)."""

OF_HEAD = ("autoscaling", "events", "fsx", "secretsmanager", "sns", "sqs", "sts")
"""What a control node calls beside those: alerts, the webhook, the file system, the proof of the monitoring."""


OF_KUBERNETES = ("autoscaling", "ecr.api", "ecr.dkr", "eks", "eks-auth", "fsx", "secretsmanager", "sns", "sts")
"""What nodes and pods of an EKS cluster call beside those of nodes (EKS user guide, "Deploy private clusters")."""


def gateways(express: bool) -> tuple[str, ...]:
    """Gateway endpoints; express: whether the stack has a directory bucket."""
    return (*GATEWAYS, EXPRESS_GATEWAY) if express else GATEWAYS


def interfaces(head: bool, kubernetes: bool = False) -> tuple[str, ...]:
    """Interface endpoints of a stack that wants them. head, kubernetes: a head node, an EKS cluster is in the VPC."""
    return tuple(dict.fromkeys((*OF_NODES, *(OF_HEAD if head else ()), *(OF_KUBERNETES if kubernetes else ()))))
