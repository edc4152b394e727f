"""One bucket: encrypted, TLS only, never public, tidied by lifecycle rules."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_aws as aws

from infra.planning import iam, lifecycle

from .base import ClusterPlan, Component, text


class Bucket(Component):
    """Companions name the bucket as text, so that a preview, which knows no ids yet, can match them."""

    def __init__(
        self,
        name: str,
        plan: ClusterPlan,
        parent: pulumi.Resource,
        bucket: str,
        purpose: str,
        *,
        versioned: bool,
        extra: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """bucket: the physical name. purpose: of its lifecycle rules. versioned: where loss would hurt.

        extra: further statements of the bucket's policy.
        """
        super().__init__(name, plan, parent)
        # A bucket that outlives the stack keeps what makes it private and safe.
        self.bucket = aws.s3.Bucket(
            f"{name}-bucket",
            bucket=bucket,
            force_destroy=not plan.keep_data,
            tags=self.tags(),
            opts=self.kept(),
        )
        self.name = self.bucket.bucket
        self.arn = self.bucket.arn
        tls_only = iam.tls_only(bucket, plan.place)["Statement"] if plan.tls_only else []
        self._private([*tls_only, *extra])
        self._encrypted()
        if versioned:
            aws.s3.BucketVersioning(
                f"{name}-versions",
                bucket=self.name,
                versioning_configuration=aws.s3.BucketVersioningVersioningConfigurationArgs(status="Enabled"),
                opts=self.kept(),
            )
        if rules := lifecycle.rules(purpose, plan.keep_data):
            aws.s3.BucketLifecycleConfiguration(
                f"{name}-lifecycle",
                bucket=self.name,
                rules=[aws.s3.BucketLifecycleConfigurationRuleArgs(**rule) for rule in rules],
                opts=self.kept(),
            )
        self.register_outputs({"bucket": self.name})

    def _private(self, statements: Sequence[Mapping[str, Any]]) -> None:
        block = aws.s3.BucketPublicAccessBlock(
            f"{self._name}-private",
            bucket=self.name,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=self.kept(),
        )
        # S3 refuses two changes to a bucket's access at once ("conditional operation in progress").
        self.access: list[pulumi.Resource] = [block]
        if statements:
            self.access.append(
                aws.s3.BucketPolicy(
                    f"{self._name}-policy",
                    bucket=self.name,
                    policy=text({"Version": "2012-10-17", "Statement": statements}),
                    opts=self.kept(depends_on=[block]),
                )
            )

    def _encrypted(self) -> None:
        key = self.plan.key_arn
        default = aws.s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs(
            sse_algorithm="aws:kms" if key else "AES256", kms_master_key_id=key
        )
        aws.s3.BucketServerSideEncryptionConfiguration(
            f"{self._name}-encryption",
            bucket=self.name,
            rules=[
                aws.s3.BucketServerSideEncryptionConfigurationRuleArgs(
                    # Else KMS is asked, and paid, for each object.
                    apply_server_side_encryption_by_default=default,
                    bucket_key_enabled=True if key else None,
                )
            ],
            opts=self.kept(),
        )
