"""The Lambda functions with their roles, log groups, queues and ways in."""

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws

from flightline.contract import BOOT_PREFIX, CALLS_PREFIX
from infra.planning import documents, iam
from infra.planning import functions as planning
from infra.planning.functions import events_queue
from infra.planning.iam.functions import RUNS_PREFIX, log_group
from infra.planning.lifecycle import ANSWER, BOOT_OUTCOME, ORDER

from .base import ClusterPlan, Component, text
from .roles import by_purpose


class Functions(Component):
    """Storage gets log events, the alert router and the verdict a queue each, training input is asked directly."""

    def __init__(
        self,
        name: str,
        plan: ClusterPlan,
        topic_key_arn: pulumi.Input[str],
        results_log_group: pulumi.Input[str],
        results_bucket: pulumi.Input[str],
    ) -> None:
        """results_log_group: the name of the group that nodes log results to. results_bucket: where boots end."""
        super().__init__(name, plan)
        self._key_arn, self._results_bucket = topic_key_arn, results_bucket
        settings, names = plan.settings, plan.names
        self._slack = settings.notifications.slack
        # Nodes of Kubernetes have no boot preflight that could fail.
        failures = 0 if settings.on_kubernetes else settings.boot.failures
        self._plans = planning.functions(self._slack, failures, names, plan.place)
        self.dead_letters = self._queue("dead-letters", names.dead_letter_queue, None)
        self.router_queue, router_takes = self._fed("events", "alert-router", planning.RECEIVES)
        self.answers_queue, verdict_takes = self._fed("answers", "verdict", planning.ANSWER_RECEIVES)
        # S3 tries the queues when it is asked to use them.
        self._told_by_bucket(router_takes, verdict_takes)
        self.functions = {key: self._function(plan) for key, plan in self._plans.items()}
        self._document("start-training", names.training_document, documents.training())
        self._document("preflight", names.preflight_document, documents.preflight())
        self._subscription(results_log_group)
        self._consume("events", "alert-router", self.router_queue.arn, enabled=True)
        self._consume("answers", "verdict", self.answers_queue.arn, enabled=True)
        # Dead letters of the storage function are whole events: switched on by hand, this sends them again.
        self._consume("replay", "storage", self.dead_letters.arn, enabled=False)
        self.router_queue_arn = self.router_queue.arn
        self.arns = {key: function.arn for key, function in self.functions.items()}
        self.register_outputs({"arns": self.arns, "router_queue_arn": self.router_queue_arn})

    def _function(self, plan: planning.Function) -> aws.lambda_.Function:
        role, rights = self._role(plan.key)
        group = log_group(self.names, plan.key)
        # Lambda checks what the role may do with the queues when the function is made.
        first = [self.log_group(f"{plan.key}-log", group), *rights]
        function = aws.lambda_.Function(
            f"{self._name}-{plan.key}",
            name=plan.name,
            description=plan.description,
            runtime=planning.RUNTIME,
            architectures=[planning.ARCHITECTURE],
            handler=plan.handler,
            code=pulumi.AssetArchive(
                {path: pulumi.FileAsset(str(file)) for path, file in planning.archive(plan.key).items()}
            ),
            role=role.arn,
            timeout=plan.timeout_s,
            memory_size=plan.memory_mib,
            reserved_concurrent_executions=planning.reserved(plan.key)
            if self.plan.settings.reserve_concurrency
            else None,
            kms_key_arn=self.plan.key_arn,
            environment=aws.lambda_.FunctionEnvironmentArgs(variables=dict(plan.environment)),
            dead_letter_config=aws.lambda_.FunctionDeadLetterConfigArgs(target_arn=self.dead_letters.arn),
            logging_config=aws.lambda_.FunctionLoggingConfigArgs(log_format="Text", log_group=group),
            tags=self.tags(),
            opts=self.child(depends_on=first),
        )
        self._retries(plan.key, function)
        return function

    def _retries(self, key: str, function: aws.lambda_.Function) -> None:
        """Of asynchronous calls: two more tries, then the event is a dead letter."""
        aws.lambda_.FunctionEventInvokeConfig(
            f"{self._name}-{key}-retries",
            function_name=function.name,
            maximum_retry_attempts=2,
            maximum_event_age_in_seconds=21_600,
            opts=self.child(),
        )

    def _role(self, key: str) -> tuple[aws.iam.Role, list[pulumi.Resource]]:
        names, place = self.names, self.place
        policies = by_purpose(self._key_arn, lambda arn: iam.function_policies(key, self._slack, names, place, arn))
        trust = iam.trust("lambda.amazonaws.com", place)
        return self.role(key, names.function_roles[key], trust, policies, suffix="-role")

    def _queue(
        self,
        key: str,
        name: str,
        redrive: str | None,
        visibility_s: int | None = None,
        after: tuple[pulumi.Resource, ...] = (),
    ) -> aws.sqs.Queue:
        longest = max(plan.timeout_s for plan in self._plans.values())
        return aws.sqs.Queue(
            f"{self._name}-{key}",
            name=name,
            message_retention_seconds=planning.QUEUE_RETENTION_S,
            visibility_timeout_seconds=visibility_s or longest * planning.VISIBILITY_FACTOR,
            redrive_policy=redrive,
            sqs_managed_sse_enabled=None if self.plan.key_arn else True,
            kms_master_key_id=self.plan.key_arn,
            tags=self.tags(),
            opts=self.child(depends_on=list(after)),
        )

    def _fed(self, key: str, function: str, receives: int) -> tuple[aws.sqs.Queue, aws.sqs.QueuePolicy]:
        """The queue of a function that events feed, and who may send them."""
        name = events_queue(self.names, function)
        # The redrive policy names the other queue as text, and SQS refuses one that is not there.
        redrive = planning.redrive(self.names, self.place, receives)
        queue = self._queue(key, name, redrive, after=(self.dead_letters,))
        senders = planning.SENDERS[key](self.names, self.place, name)
        policy_name = f"{self._name}-{key}-policy"
        return queue, aws.sqs.QueuePolicy(policy_name, queue_url=queue.url, policy=text(senders), opts=self.child())

    def _told_by_bucket(self, *after: aws.sqs.QueuePolicy) -> None:
        """The outcome of every node's boot for the router; orders and answers of runs for the verdict."""
        told = {
            "boots": (self.router_queue, BOOT_PREFIX, BOOT_OUTCOME),
            "answers": (self.answers_queue, CALLS_PREFIX, ANSWER),
            "orders": (self.answers_queue, RUNS_PREFIX, ORDER),
        }
        aws.s3.BucketNotification(
            f"{self._name}-boots",
            bucket=self._results_bucket,
            queues=[
                aws.s3.BucketNotificationQueueArgs(
                    id=key,
                    queue_arn=queue.arn,
                    events=["s3:ObjectCreated:*"],
                    filter_prefix=prefix,
                    filter_suffix=suffix,
                )
                for key, (queue, prefix, suffix) in told.items()
            ],
            opts=self.child(depends_on=list(after)),
        )

    def _subscription(self, group: pulumi.Input[str]) -> None:
        storage = self.functions["storage"]
        permission = aws.lambda_.Permission(
            f"{self._name}-storage-from-logs",
            action="lambda:InvokeFunction",
            function=storage.name,
            principal="logs.amazonaws.com",
            source_arn=self.place.arn("logs", f"log-group:{self.names.results_log_group}:*"),
            source_account=self.place.account,
            opts=self.child(),
        )
        aws.cloudwatch.LogSubscriptionFilter(
            f"{self._name}-results",
            name=self.names.functions["storage"],
            log_group=group,
            # Every line: the function says which are its own, and keeps those that are damaged.
            filter_pattern="",
            destination_arn=storage.arn,
            opts=self.child(depends_on=[permission]),
        )

    def _consume(self, key: str, function: str, queue_arn: pulumi.Input[str], *, enabled: bool) -> None:
        (batch, window_s), most = planning.BATCHES[key], planning.AT_ONCE.get(key)
        aws.lambda_.EventSourceMapping(
            f"{self._name}-{key}-to-{function}",
            event_source_arn=queue_arn,
            function_name=self.functions[function].arn,
            batch_size=batch,
            maximum_batching_window_in_seconds=window_s,
            function_response_types=["ReportBatchItemFailures"],
            scaling_config=aws.lambda_.EventSourceMappingScalingConfigArgs(maximum_concurrency=most) if most else None,
            enabled=enabled,
            tags=self.tags(),
            opts=self.child(),
        )

    def _document(self, key: str, name: str, content: Mapping[str, Any]) -> None:
        aws.ssm.Document(
            f"{self._name}-{key}",
            name=name,
            document_type="Command",
            document_format="JSON",
            target_type="/AWS::EC2::Instance",
            content=text(content),
            tags=self.tags(),
            opts=self.child(),
        )
