"""Who may use the one key of a stack (setting kmsKey).

Sources: KMS developer guide, "Key policies"; CloudWatch Logs user guide, "Encrypt log data using AWS KMS"; EC2 Auto
Scaling user guide, "Required AWS KMS key policy for use with encrypted volumes"; SNS and SQS developer guides, "Key
management"; CloudTrail user guide, "Configure AWS KMS key policies"; FSx for Lustre user guide, "Linking your file
system to an S3 bucket" (buckets encrypted with a key of one's own).
"""

from collections.abc import Mapping
from typing import Any

from infra.planning.alerts import PUBLISHERS
from infra.planning.iam.statements import Document, allow, document, of
from infra.planning.names import Place
from infra.planning.resource_policies import grant, policy, service

DATA = of("kms", "Decrypt", "Encrypt", "GenerateDataKey*", "ReEncrypt*")
BY_SERVICES = ("dynamodb", "lambda", "s3", "secretsmanager", "sns", "sqs")
SENDERS = ("events", "s3", "sns")
"""Who sends into the stack's queues. The queues' own policies say which rules, buckets and topics; EventBridge names no
source to a key (SNS developer guide, "Key management")."""
LINKED = ("autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling", "s3.data-source.lustre.fsx.amazonaws.com/*")
"""Roles that launch nodes with encrypted volumes and that carry files between a bucket and FSx."""


def key_policy(place: Place) -> Mapping[str, Any]:
    """The account administers the key; services and their linked roles use it for this account's resources."""
    mine = {"StringEquals": {"aws:SourceAccount": place.account}}
    role = f"arn:{place.partition}:iam::{place.account}:role/aws-service-role/"
    linked: dict[str, dict[str, Any]] = {
        "StringEquals": {"kms:CallerAccount": place.account},
        # By condition: a principal that is not there yet makes the whole policy invalid.
        "ArnLike": {"aws:PrincipalArn": [role + name for name in LINKED]},
    }
    logs = {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": place.arn("logs", "*")}}
    trail = {"ArnLike": {"aws:SourceArn": place.arn("cloudtrail", "trail/*")}}
    anyone, use = {"AWS": "*"}, [*DATA, "kms:DescribeKey"]
    return policy(
        grant("Account", {"AWS": f"arn:{place.partition}:iam::{place.account}:root"}, "kms:*", "*"),
        grant("Logs", service(f"logs.{place.region}"), use, "*", logs),
        grant("Publishers", {"Service": list(PUBLISHERS)}, ["kms:Decrypt", "kms:GenerateDataKey*"], "*", mine),
        grant(
            "Senders",
            {"Service": [service(name)["Service"] for name in SENDERS]},
            ["kms:Decrypt", "kms:GenerateDataKey*"],
            "*",
        ),
        grant("Trail", service("cloudtrail"), ["kms:DescribeKey", "kms:GenerateDataKey*"], "*", trail),
        grant("Linked", anyone, use, "*", linked),
        grant("Grants", anyone, "kms:CreateGrant", "*", {**linked, "Bool": {"kms:GrantIsForAWSResource": "true"}}),
    )


def use_policy(key_arn: str, place: Place) -> Document:
    """What a role needs beside its rights to data: the key, and only through the services that hold the data."""
    through = [f"{name}.{place.region}.amazonaws.com" for name in BY_SERVICES]
    return document(allow("Key", DATA, [key_arn], {"StringEquals": {"kms:ViaService": through}}))
