"""The alerts topic with its key, its e-mail subscriptions, and the Slack webhook in Secrets Manager."""

import pulumi
import pulumi_aws as aws

from infra.planning import alerts

from .base import ClusterPlan, Component, text


class Notifications(Component):
    """AWS' own services publish too; the managed key of SNS would refuse them, hence a key of the stack.

    With a topic that is there already, its owner decides who publishes: its policy and its key's let those services.
    """

    def __init__(self, name: str, plan: ClusterPlan, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, plan, opts=opts)
        settings = plan.settings.notifications
        if settings.topic and settings.topic_key:
            self.key_arn = pulumi.Output.from_input(settings.topic_key)
            self.topic_arn = pulumi.Output.from_input(plan.place.arn("sns", settings.topic))
        else:
            self._make()
        for email in settings.emails:
            aws.sns.TopicSubscription(
                f"{name}-email-{email}", topic=self.topic_arn, protocol="email", endpoint=email, opts=self.child()
            )
        self._probe()
        self.slack_secret_arn = self._slack() if settings.slack else None
        self.register_outputs({"topic_arn": self.topic_arn, "key_arn": self.key_arn})

    def _make(self) -> None:
        name, names, place = self._name, self.names, self.place
        self.key_arn = pulumi.Output.from_input(
            self.plan.key_arn
            or self.key(f"Alerts of {names.cluster}", names.alerts_key_alias, text(alerts.key_policy(place))).arn
        )
        self.topic = aws.sns.Topic(
            f"{name}-alerts",
            name=names.alerts_topic,
            kms_master_key_id=self.key_arn,
            tags=self.tags(),
            opts=self.child(),
        )
        policy = aws.sns.TopicPolicy(
            f"{name}-alerts-policy",
            arn=self.topic.arn,
            policy=text(alerts.topic_policy(names, place)),
            opts=self.child(),
        )
        # With the policy behind it: a budget or an anomaly alarm is refused a topic that it may not publish to.
        self.topic_arn = pulumi.Output.all(self.topic.arn, policy.id).apply(_first)

    def _probe(self) -> None:
        """Where the monitoring's proof sees that an alert arrived: nobody needs the right to (un)subscribe."""
        names, place = self.names, self.place
        queue = aws.sqs.Queue(
            f"{self._name}-probe",
            name=names.probe_queue,
            message_retention_seconds=600,
            visibility_timeout_seconds=0,
            sqs_managed_sse_enabled=None if self.plan.key_arn else True,
            kms_master_key_id=self.plan.key_arn,
            tags=self.tags(),
            opts=self.child(),
        )
        sent = text(alerts.probe_policy(names, place))
        policy = aws.sqs.QueuePolicy(f"{self._name}-probe-policy", queue_url=queue.url, policy=sent, opts=self.child())
        aws.sns.TopicSubscription(
            f"{self._name}-probe-told",
            topic=self.topic_arn,
            protocol="sqs",
            endpoint=queue.arn,
            opts=self.child(depends_on=[policy]),
        )

    def _slack(self) -> pulumi.Output[str]:
        secret = aws.secretsmanager.Secret(
            f"{self._name}-slack",
            name=self.names.slack_secret,
            description="Incoming webhook that alerts are posted to",
            # A name that waits for its deletion cannot be used, and the webhook stays in the stack's configuration.
            recovery_window_in_days=0,
            kms_key_id=self.plan.key_arn,
            tags=self.tags(),
            opts=self.child(),
        )
        aws.secretsmanager.SecretVersion(
            f"{self._name}-slack-webhook",
            secret_id=secret.id,
            secret_string=pulumi.Output.secret(self.plan.settings.notifications.slack_webhook),
            opts=self.child(),
        )
        return secret.arn


def _first(parts: list[str]) -> str:
    return parts[0]
