"""Which AWS services have a VPC endpoint, by the last part of the service's name, and what it lets through.

A gateway costs nothing. Interfaces are paid for by the hour; without NAT they are the only way to their services.
Nodes write to the stack's account, with whatever keys: root on one has its own way to every other account else. What is
read is not bound: boots read buckets of AWS and of others, and no list of those would be whole (docs/security.md).
"""

import json
from collections.abc import Sequence
from typing import Any

GATEWAYS = ("s3", "dynamodb")
EXPRESS_GATEWAY = "s3express"
"""Directory buckets are behind endpoints of their own (S3 user guide, networking for directory buckets)."""

OF_NODES = ("ssm", "ssmmessages", "ec2messages", "logs", "monitoring", "ec2")
"""Session Manager, and the CloudWatch agent (`ec2` for its dimensions)."""

OF_HEAD = ("autoscaling", "events", "fsx", "secretsmanager", "sns", "sqs", "sts")
"""What a control node calls beside those: alerts, the webhook, the file system, the proof of the monitoring."""


OF_KUBERNETES = ("autoscaling", "ecr.api", "ecr.dkr", "eks", "eks-auth", "fsx", "secretsmanager", "sns", "sts")
"""What nodes and pods of an EKS cluster call beside those of nodes (EKS user guide, "Deploy private clusters")."""


EVERY = tuple(sorted({*GATEWAYS, EXPRESS_GATEWAY, *OF_NODES, *OF_HEAD, *OF_KUBERNETES}))
"""Every service that a stack may have an endpoint for."""
READS = ("GetBucketLocation", "GetObject", "GetObjectVersion", "ListBucket")
"""Of any bucket: repositories, image layers, agents and installers. Source: S3's table in the service authorization
reference."""
WITHOUT_POLICY = ("eks", "eks-auth")
"""Of these nothing was found that says they take a policy (PrivateLink guide, "Services that integrate")."""


def policy(service: str, accounts: Sequence[str]) -> str | None:
    """The endpoint policy, as text, with the accounts that may be written to; None leaves AWS' own, which is open."""
    if service in WITHOUT_POLICY:
        return None
    if service not in (*GATEWAYS, EXPRESS_GATEWAY):
        # Whose credentials they are. A request without any has no such key: a data channel of Session Manager is one.
        return _document(
            _let("OwnCredentials", ["*"], {"StringEqualsIfExists": {"aws:PrincipalAccount": list(accounts)}})
        )
    own = {"StringEquals": {"aws:ResourceAccount": list(accounts)}}
    reads = [_let("Read", [f"s3:{name}" for name in READS])] if service == "s3" else []
    return _document(_let("OwnAccount", [f"{service}:*"], own), *reads)


def _let(sid: str, actions: Sequence[str], condition: dict[str, Any] | None = None) -> dict[str, Any]:
    found = {"Sid": sid, "Effect": "Allow", "Principal": "*", "Action": list(actions), "Resource": "*"}
    return {**found, **({"Condition": condition} if condition else {})}


def _document(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)}, sort_keys=True)


def gateways(express: bool) -> tuple[str, ...]:
    """Gateway endpoints; express: whether the stack has a directory bucket."""
    return (*GATEWAYS, EXPRESS_GATEWAY) if express else GATEWAYS


def interfaces(head: bool, kubernetes: bool = False) -> tuple[str, ...]:
    """Interface endpoints of a stack that wants them. head, kubernetes: a head node, an EKS cluster is in the VPC."""
    return tuple(dict.fromkeys((*OF_NODES, *(OF_HEAD if head else ()), *(OF_KUBERNETES if kubernetes else ()))))
