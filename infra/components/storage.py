"""Buckets for data, checkpoints and results, and the S3 Express directory bucket beside the nodes."""

import pulumi_aws as aws

from .base import ClusterPlan, Component
from .bucket import Bucket

VERSIONED = ("data", "checkpoints", "results")
"""What is overwritten or deleted by mistake can be taken back. A data set is written once: its versions cost nothing.

Never the transfer bucket: old versions of what was sent to nodes, module arguments included, would stay readable.
"""


class Storage(Component):
    """Every bucket that nodes read or write."""

    def __init__(self, name: str, plan: ClusterPlan) -> None:
        super().__init__(name, plan)
        names = plan.names
        self.data = self._bucket("data", names.data_bucket)
        self.checkpoints = self._bucket("checkpoints", names.checkpoints_bucket)
        self.results = self._bucket("results", names.results_bucket)
        self.transfer = self._bucket("transfer", names.transfer_bucket)
        self.express = self._express() if plan.settings.storage.s3_express else None
        self.register_outputs(
            {"data": self.data.name, "checkpoints": self.checkpoints.name, "results": self.results.name}
        )

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
