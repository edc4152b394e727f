"""Buckets for data, checkpoints and results, and the S3 Express directory bucket beside the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.config.model import StorageSettings as StorageSettings
from infra.planning import lifecycle
from infra.planning.names import Names, Place

from .base import child, data
from .bucket import Bucket, BucketArgs

VERSIONED = ("data", "checkpoints", "results")
"""What is overwritten or deleted by mistake can be taken back. A data set is written once: its versions cost nothing.

Never the transfer bucket: old versions of what was sent to nodes, module arguments included, would stay readable.
"""


@dataclass(frozen=True)
class StorageArgs:
    """gpu_zone_id: where the directory bucket lives, for example "use1-az4". tls_only: see BucketArgs."""

    settings: StorageSettings
    names: Names
    place: Place
    gpu_zone_id: str
    tls_only: bool
    tags: Mapping[str, str]


class Storage(pulumi.ComponentResource):
    """Every bucket that nodes read or write."""

    def __init__(self, name: str, args: StorageArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:Storage", name, {}, opts)
        self._name, self._args = name, args
        self.data = self._bucket("data", args.names.data_bucket)
        self.checkpoints = self._bucket("checkpoints", args.names.checkpoints_bucket)
        self.results = self._bucket("results", args.names.results_bucket)
        self.transfer = self._bucket("transfer", args.names.transfer_bucket)
        self.express = self._express() if args.settings.s3_express else None
        self.register_outputs(
            {"data": self.data.name, "checkpoints": self.checkpoints.name, "results": self.results.name}
        )

    def _bucket(self, purpose: str, bucket: str) -> Bucket:
        keep = self._args.settings.keep_data
        return Bucket(
            f"{self._name}-{purpose}",
            BucketArgs(
                bucket=bucket,
                place=self._args.place,
                keep_data=keep,
                versioned=purpose in VERSIONED,
                rules=lifecycle.rules(purpose, keep),
                tls_only=self._args.tls_only,
                tags=self._args.tags,
            ),
            child(self),
        )

    def _express(self) -> aws.s3.DirectoryBucket:
        keep = self._args.settings.keep_data
        return aws.s3.DirectoryBucket(
            f"{self._name}-express",
            bucket=self._args.names.express_bucket,
            location=aws.s3.DirectoryBucketLocationArgs(name=self._args.gpu_zone_id, type="AvailabilityZone"),
            data_redundancy="SingleAvailabilityZone",
            type="Directory",
            force_destroy=not keep,
            tags=dict(self._args.tags),
            opts=data(self, keep),
        )
