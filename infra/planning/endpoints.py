"""Which AWS services have a VPC endpoint, by the last part of the service's name.

A gateway costs nothing. Interfaces are paid for by the hour; without NAT they are the only way to their services.
"""

GATEWAYS = ("s3", "dynamodb")
EXPRESS_GATEWAY = "s3express"
"""Directory buckets are behind endpoints of their own (S3 user guide, networking for directory buckets)."""

OF_NODES = ("ssm", "ssmmessages", "ec2messages", "logs", "monitoring", "autoscaling", "ec2")
"""Session Manager, the CloudWatch agent (`ec2` for its dimensions), and the launch hook."""

OF_HEAD = ("events", "fsx", "secretsmanager", "sns", "sqs", "sts")
"""What a control node calls beside those: alerts, the webhook, the file system, the proof of the monitoring."""


OF_KUBERNETES = ("ecr.api", "ecr.dkr", "eks", "eks-auth", "fsx", "secretsmanager", "sns", "sts")
"""What nodes and pods of an EKS cluster call beside those of nodes (EKS user guide, "Deploy private clusters")."""


EVERY = tuple(sorted({*GATEWAYS, EXPRESS_GATEWAY, *OF_NODES, *OF_HEAD, *OF_KUBERNETES}))
"""Every service that a stack may have an endpoint for."""


def gateways(express: bool) -> tuple[str, ...]:
    """Gateway endpoints; express: whether the stack has a directory bucket."""
    return (*GATEWAYS, EXPRESS_GATEWAY) if express else GATEWAYS


def interfaces(head: bool, kubernetes: bool = False) -> tuple[str, ...]:
    """Interface endpoints of a stack that wants them. head, kubernetes: a head node, an EKS cluster is in the VPC."""
    return (*OF_NODES, *(OF_HEAD if head else ()), *(OF_KUBERNETES if kubernetes else ()))
