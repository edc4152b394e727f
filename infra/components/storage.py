"""Buckets for data, checkpoints and results, and the S3 Express directory bucket beside the nodes."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from .base import ClusterPlan, Component
from .bucket import Bucket

VERSIONED = ("data", "checkpoints", "results")
"""What is overwritten or deleted by mistake can be taken back. A data set is written once: its versions cost nothing.

Never the transfer bucket: old versions of what was sent to nodes, module arguments included, would stay readable.
"""


@dataclass(frozen=True)
class BucketThere:
    """A bucket that was there before: it is read and written, and nothing about it is changed."""

    name: pulumi.Output[str]


class Storage(Component):
    """Every bucket that nodes read or write.

    Those of data and checkpoints may be there already. Of results and of what goes to nodes the stack has its own: it
    sets their notifications and lifecycle, of which a bucket has one set.
    """

    def __init__(self, name: str, plan: ClusterPlan, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, plan, opts=opts)
        names, given = plan.names, plan.settings.storage
        self.data = self._there(given.data_bucket) or self._bucket("data", names.data_bucket)
        there = self._there(given.checkpoints_bucket)
        self.checkpoints = there or self._bucket("checkpoints", names.checkpoints_bucket)
        self.results = self._bucket("results", names.results_bucket)
        self.transfer = self._bucket("transfer", names.transfer_bucket)
        self.express = self._express() if plan.settings.storage.s3_express else None
        self.register_outputs(
            {"data": self.data.name, "checkpoints": self.checkpoints.name, "results": self.results.name}
        )

    def _there(self, bucket: str | None) -> BucketThere | None:
        return BucketThere(pulumi.Output.from_input(bucket)) if bucket else None

    def _bucket(self, purpose: str, bucket: str) -> Bucket:
        versioned = purpose in VERSIONED
        return Bucket(f"{self._name}-{purpose}", self.plan, self, bucket, purpose, versioned=versioned)

    def _express(self) -> aws.s3.DirectoryBucket:
        zone = self.plan.settings.network.zones.home_id
        return aws.s3.DirectoryBucket(
            f"{self._name}-express",
            bucket=self.names.express_bucket,
            location=aws.s3.DirectoryBucketLocationArgs(name=zone, type="AvailabilityZone"),
            data_redundancy="SingleAvailabilityZone",
            type="Directory",
            force_destroy=not self.plan.keep_data,
            tags=self.tags(),
            opts=self.kept(),
        )
