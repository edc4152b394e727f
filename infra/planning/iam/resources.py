"""Trust policies and resource policies."""

from typing import Any

from infra.planning.iam.statements import WRITE_LOGS, Arns, Document, allow, document
from infra.planning.names import Names, Place

_NAMES_SOURCE = ("vpc-flow-logs.amazonaws.com",)


def trust(service: str, place: Place, source: str | None = None) -> Document:
    """Trust policy of a role assumed by one service, for example "ec2.amazonaws.com".

    source: ARN pattern of what the service acts for. VPC flow logs are held to this account in any case; EC2 and
    Lambda name no source when they assume a role, so a condition would shut them out.
    """
    statement: dict[str, Any] = {
        "Sid": "Assume",
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": ["sts:AssumeRole"],
    }
    condition: dict[str, Any] = {}
    if source or service in _NAMES_SOURCE:
        condition["StringEquals"] = {"aws:SourceAccount": place.account}
    if source:
        condition["ArnLike"] = {"aws:SourceArn": source}
    return document({**statement, **({"Condition": condition} if condition else {})})


def pod_trust(cluster: str, namespace: str, account: str, place: Place) -> Document:
    """Trust policy of a role for the pods of one service account.

    After EKS' user guide, "Create IAM role with trust policy required by EKS Pod Identity".

    Session tags name cluster, namespace and account: without them any association of the AWS account could use it.
    """
    tags = {"eks-cluster-name": cluster, "kubernetes-namespace": namespace, "kubernetes-service-account": account}
    return document(
        {
            "Sid": "Pods",
            "Effect": "Allow",
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
            "Condition": {
                "StringEquals": {
                    "aws:SourceAccount": place.account,
                    **{f"aws:RequestTag/{key}": value for key, value in tags.items()},
                }
            },
        }
    )


def tls_only(bucket: str, place: Place) -> Document:
    """Bucket policy that refuses requests without TLS."""
    arn = f"arn:{place.partition}:s3:::{bucket}"
    return document(
        {
            "Sid": "TlsOnly",
            "Effect": "Deny",
            "Principal": {"AWS": "*"},
            "Action": ["s3:*"],
            "Resource": [arn, f"{arn}/*"],
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
    )


def flow_log_policy(names: Names, place: Place) -> Document:
    """Write VPC flow logs to their group."""
    return document(
        allow("Write", WRITE_LOGS, Arns(names, place).log_group(names.flow_log_group)),
        allow("Groups", ["logs:DescribeLogGroups"]),
    )
