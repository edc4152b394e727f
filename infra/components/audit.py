"""CloudTrail: who called which AWS API, kept in a bucket of its own."""

import pulumi_aws as aws

from infra.planning.resource_policies import Statement, grant, service

from .base import ClusterPlan, Component
from .bucket import Bucket


class Audit(Component):
    """Management events of all regions and writes to the data buckets, with digests that show tampering."""

    def __init__(self, name: str, plan: ClusterPlan) -> None:
        super().__init__(name, plan)
        self.bucket = Bucket(
            f"{name}-trail", plan, self, plan.names.trail_bucket, "checkpoints", versioned=True, extra=_statements(plan)
        )
        logical, options = self.named_before("trail", depends_on=self.bucket.access)
        self.trail = aws.cloudtrail.Trail(
            logical,
            name=plan.names.trail,
            s3_bucket_name=self.bucket.name,
            is_multi_region_trail=True,
            include_global_service_events=True,
            enable_log_file_validation=True,
            kms_key_id=plan.key_arn,
            event_selectors=_selectors(plan),
            tags=self.tags(),
            opts=options,
        )
        self.register_outputs({"bucket": self.bucket.name})


def _selectors(plan: ClusterPlan) -> list[aws.cloudtrail.TrailEventSelectorArgs]:
    names, s3 = plan.names, f"arn:{plan.place.partition}:s3:::"
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


def _statements(plan: ClusterPlan) -> list[Statement]:
    names = plan.names
    bucket = f"arn:{plan.place.partition}:s3:::{names.trail_bucket}"
    # The second is a trail's name of before it had the region, which it keeps.
    trails = (names.trail, f"{names.cluster}-trail")
    own = {"aws:SourceArn": [plan.place.arn("cloudtrail", f"trail/{name}") for name in trails]}
    written = {"StringEquals": {**own, "s3:x-amz-acl": "bucket-owner-full-control"}}
    logs = f"{bucket}/AWSLogs/{plan.place.account}/*"
    return [
        grant("TrailLooks", service("cloudtrail"), "s3:GetBucketAcl", bucket, {"StringEquals": own}),
        grant("TrailWrites", service("cloudtrail"), "s3:PutObject", logs, written),
    ]
