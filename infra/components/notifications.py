"""The alerts topic with its key, its e-mail subscriptions, and the Slack webhook in Secrets Manager."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.config.model import NotificationSettings as NotificationSettings
from infra.planning import alerts
from infra.planning.names import Names, Place

from .base import child, text


@dataclass(frozen=True)
class NotificationsArgs:
    """What is told to whom, and where."""

    settings: NotificationSettings
    names: Names
    place: Place
    tags: Mapping[str, str]


class Notifications(pulumi.ComponentResource):
    """AWS' own services publish too; the managed key of SNS would refuse them, hence a key of the stack."""

    def __init__(self, name: str, args: NotificationsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:Notifications", name, {}, opts)
        self._name, self._args = name, args
        self.key = self._key()
        self.key_arn = self.key.arn
        self.topic = aws.sns.Topic(
            f"{name}-alerts",
            name=args.names.alerts_topic,
            kms_master_key_id=self.key.arn,
            tags=dict(args.tags),
            opts=child(self),
        )
        policy = aws.sns.TopicPolicy(
            f"{name}-alerts-policy",
            arn=self.topic.arn,
            policy=text(alerts.topic_policy(args.names, args.place)),
            opts=child(self),
        )
        # With the policy behind it: a budget or an anomaly alarm is refused a topic that it may not publish to.
        self.topic_arn = pulumi.Output.all(self.topic.arn, policy.id).apply(_first)
        for email in args.settings.emails:
            aws.sns.TopicSubscription(
                f"{name}-email-{email}", topic=self.topic.arn, protocol="email", endpoint=email, opts=child(self)
            )
        self.slack_secret_arn = self._slack() if args.settings.slack else None
        self.register_outputs({"topic_arn": self.topic_arn, "key_arn": self.key_arn})

    def _key(self) -> aws.kms.Key:
        key = aws.kms.Key(
            f"{self._name}-key",
            description=f"Alerts of {self._args.names.cluster}",
            enable_key_rotation=True,
            deletion_window_in_days=30,
            policy=text(alerts.key_policy(self._args.place)),
            tags=dict(self._args.tags),
            opts=child(self),
        )
        aws.kms.Alias(
            f"{self._name}-key-alias",
            name=self._args.names.alerts_key_alias,
            target_key_id=key.id,
            opts=child(self),
        )
        return key

    def _slack(self) -> pulumi.Output[str]:
        secret = aws.secretsmanager.Secret(
            f"{self._name}-slack",
            name=self._args.names.slack_secret,
            description="Incoming webhook that alerts are posted to",
            # A name that waits for its deletion cannot be used, and the webhook stays in the stack's configuration.
            recovery_window_in_days=0,
            tags=dict(self._args.tags),
            opts=child(self),
        )
        aws.secretsmanager.SecretVersion(
            f"{self._name}-slack-webhook",
            secret_id=secret.id,
            secret_string=pulumi.Output.secret(self._args.settings.slack_webhook),
            opts=child(self),
        )
        return secret.arn


def _first(parts: list[str]) -> str:
    return parts[0]
