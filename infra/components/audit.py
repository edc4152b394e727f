"""CloudTrail: who called which AWS API, kept in a bucket of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from infra.planning import lifecycle
from infra.planning.names import Names, Place

from .base import child
from .bucket import Bucket, BucketArgs

SERVICE = "cloudtrail.amazonaws.com"


@dataclass(frozen=True)
class AuditArgs:
    """Where the trail goes and whether it outlives the stack."""

    names: Names
    place: Place
    keep_data: bool
    tls_only: bool
    tags: Mapping[str, str]


class Audit(pulumi.ComponentResource):
    """Management events of all regions and writes to the data buckets, with digests that show tampering."""

    def __init__(self, name: str, args: AuditArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:Audit", name, {}, opts)
        self.bucket = Bucket(
            f"{name}-trail",
            BucketArgs(
                bucket=args.names.trail_bucket,
                place=args.place,
                keep_data=args.keep_data,
                versioned=True,
                rules=lifecycle.rules("checkpoints", args.keep_data),
                tls_only=args.tls_only,
                tags=args.tags,
                extra=_statements(args),
            ),
            child(self),
        )
        self.trail = aws.cloudtrail.Trail(
            f"{name}-trail",
            name=args.names.trail,
            s3_bucket_name=self.bucket.name,
            is_multi_region_trail=True,
            include_global_service_events=True,
            enable_log_file_validation=True,
            event_selectors=_selectors(args),
            tags=dict(args.tags),
            opts=child(self, depends_on=self.bucket.access),
        )
        self.register_outputs({"bucket": self.bucket.name})


def _selectors(args: AuditArgs) -> list[aws.cloudtrail.TrailEventSelectorArgs]:
    names, s3 = args.names, f"arn:{args.place.partition}:s3:::"
    objects = [f"{s3}{bucket}/" for bucket in (names.data_bucket, names.checkpoints_bucket, names.results_bucket)]
    return [
        aws.cloudtrail.TrailEventSelectorArgs(include_management_events=True, read_write_type="All"),
        # Reads are left out: an epoch over a large data set is millions of them, each paid for.
        aws.cloudtrail.TrailEventSelectorArgs(
            include_management_events=False,
            read_write_type="WriteOnly",
            data_resources=[aws.cloudtrail.TrailEventSelectorDataResourceArgs(type="AWS::S3::Object", values=objects)],
        ),
    ]


def _statements(args: AuditArgs) -> list[dict[str, Any]]:
    bucket = f"arn:{args.place.partition}:s3:::{args.names.trail_bucket}"
    trail = args.place.arn("cloudtrail", f"trail/{args.names.trail}")
    own = {"aws:SourceArn": trail}
    return [
        {
            "Sid": "TrailLooks",
            "Effect": "Allow",
            "Principal": {"Service": SERVICE},
            "Action": "s3:GetBucketAcl",
            "Resource": bucket,
            "Condition": {"StringEquals": own},
        },
        {
            "Sid": "TrailWrites",
            "Effect": "Allow",
            "Principal": {"Service": SERVICE},
            "Action": "s3:PutObject",
            "Resource": f"{bucket}/AWSLogs/{args.place.account}/*",
            "Condition": {"StringEquals": {**own, "s3:x-amz-acl": "bucket-owner-full-control"}},
        },
    ]
