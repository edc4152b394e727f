"""One bucket: encrypted, TLS only, never public, tidied by lifecycle rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from infra.planning import iam
from infra.planning.names import Place

from .base import data, text


@dataclass(frozen=True)
class BucketArgs:
    """bucket: the physical name. versioned: where loss would hurt. extra: further statements of the bucket's policy.

    tls_only: always, but for an emulator, which speaks plain HTTP on loopback and would lock itself out.
    """

    bucket: str
    place: Place
    keep_data: bool
    versioned: bool
    rules: Sequence[Mapping[str, Any]]
    tags: Mapping[str, str]
    tls_only: bool
    extra: Sequence[Mapping[str, Any]] = ()


class Bucket(pulumi.ComponentResource):
    """Companions name the bucket as text, so that a preview, which knows no ids yet, can match them."""

    def __init__(self, name: str, args: BucketArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:Bucket", name, {}, opts)
        self._name, self._args = name, args
        self.bucket = aws.s3.Bucket(
            f"{name}-bucket",
            bucket=args.bucket,
            force_destroy=not args.keep_data,
            tags=dict(args.tags),
            opts=data(self, args.keep_data),
        )
        self.name = self.bucket.bucket
        self.arn = self.bucket.arn
        self._private()
        self._encrypted()
        if args.versioned:
            aws.s3.BucketVersioning(
                f"{name}-versions",
                bucket=self.name,
                versioning_configuration=aws.s3.BucketVersioningVersioningConfigurationArgs(status="Enabled"),
                opts=self._kept(),
            )
        if args.rules:
            aws.s3.BucketLifecycleConfiguration(
                f"{name}-lifecycle",
                bucket=self.name,
                rules=[aws.s3.BucketLifecycleConfigurationRuleArgs(**rule) for rule in args.rules],
                opts=self._kept(),
            )
        self.register_outputs({"bucket": self.name})

    def _kept(self, **options: Any) -> pulumi.ResourceOptions:
        # A bucket that outlives the stack keeps what makes it private and safe.
        return data(self, self._args.keep_data, **options)

    def _private(self) -> None:
        block = aws.s3.BucketPublicAccessBlock(
            f"{self._name}-private",
            bucket=self.name,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=self._kept(),
        )
        # S3 refuses two changes to a bucket's access at once ("conditional operation in progress").
        self.access: list[pulumi.Resource] = [block]
        if self._statements():
            self.access.append(
                aws.s3.BucketPolicy(
                    f"{self._name}-policy",
                    bucket=self.name,
                    policy=text({"Version": "2012-10-17", "Statement": self._statements()}),
                    opts=self._kept(depends_on=[block]),
                )
            )

    def _statements(self) -> list[Mapping[str, Any]]:
        tls_only = iam.tls_only(self._args.bucket, self._args.place)["Statement"] if self._args.tls_only else []
        return [*tls_only, *self._args.extra]

    def _encrypted(self) -> None:
        default = aws.s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs(
            sse_algorithm="AES256"
        )
        aws.s3.BucketServerSideEncryptionConfiguration(
            f"{self._name}-encryption",
            bucket=self.name,
            rules=[
                aws.s3.BucketServerSideEncryptionConfigurationRuleArgs(apply_server_side_encryption_by_default=default)
            ],
            opts=self._kept(),
        )
