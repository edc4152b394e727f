"""Alarms, log filters, event rules and the dashboard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.config.model import NodesSettings, Thresholds
from infra.planning import alarms as plans
from infra.planning import monitoring as planning
from infra.planning.instance_types import CAPACITY_BLOCK
from infra.planning.names import Names, Place

from .base import child


@dataclass(frozen=True)
class MonitoringArgs:
    """router_queue_arn: where events go. system_log_group: the name of the group with the nodes' kernel messages.

    idle_policy_arn: the scaling policy that the idle alarm starts; None where it only rings. agent: nodes have the
    CloudWatch agent; those of Kubernetes are watched by Prometheus.
    """

    nodes: NodesSettings
    thresholds: Thresholds
    names: Names
    place: Place
    topic_arn: pulumi.Input[str]
    router_queue_arn: pulumi.Input[str]
    system_log_group: pulumi.Input[str]
    tags: Mapping[str, str]
    idle_policy_arn: pulumi.Input[str] | None = None
    agent: bool = True


class Monitoring(pulumi.ComponentResource):
    """Alarms go to the alert router by EventBridge; those about the monitoring itself go to the topic as well."""

    def __init__(self, name: str, args: MonitoringArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:Monitoring", name, {}, opts)
        self._name, self._args = name, args
        planned = plans.alarms(args.names, args.nodes, args.thresholds, args.agent)
        whole = plans.composite(args.names, planned)
        self.alarms = {alarm.name: self._alarm(alarm) for alarm in planned}
        self.unhealthy = self._composite(whole)
        self._filters()
        capacity = args.nodes.capacity
        block = capacity.reservation_id if capacity.kind == CAPACITY_BLOCK else None
        for rule in planning.rules(args.names, block or "", args.agent):
            self._rule(rule)
        self.dashboard = aws.cloudwatch.Dashboard(
            f"{name}-dashboard",
            dashboard_name=args.names.cluster,
            dashboard_body=planning.dashboard(args.names, args.place, planned, whole),
            opts=child(self),
        )
        self.register_outputs({"unhealthy": self.unhealthy.arn, "dashboard": args.names.cluster})

    def _alarm(self, alarm: plans.Alarm) -> aws.cloudwatch.MetricAlarm:
        actions = [self._args.topic_arn] if alarm.direct else []
        return aws.cloudwatch.MetricAlarm(
            f"{self._name}-{alarm.name.removeprefix(self._args.names.cluster + '-')}",
            name=alarm.name,
            alarm_description=alarm.description,
            metric_queries=_queries(alarm),
            threshold=alarm.threshold,
            comparison_operator=alarm.comparison,
            evaluation_periods=alarm.periods,
            datapoints_to_alarm=alarm.datapoints,
            treat_missing_data=alarm.missing,
            alarm_actions=[*actions, *self._starts(alarm)],
            ok_actions=actions,
            insufficient_data_actions=actions if alarm.tells_no_data else None,
            tags=dict(self._args.tags),
            opts=child(self),
        )

    def _starts(self, alarm: plans.Alarm) -> list[pulumi.Input[str]]:
        policy = self._args.idle_policy_arn
        return [policy] if policy is not None and alarm.name.endswith(plans.IDLE) else []

    def _composite(self, plan: plans.Composite) -> aws.cloudwatch.CompositeAlarm:
        return aws.cloudwatch.CompositeAlarm(
            f"{self._name}-cluster-unhealthy",
            alarm_name=plan.name,
            alarm_description=plan.description,
            alarm_rule=plan.rule,
            alarm_actions=[self._args.topic_arn],
            ok_actions=[self._args.topic_arn],
            tags=dict(self._args.tags),
            # The rule names its alarms: they must be there first, and go last.
            opts=child(self, depends_on=list(self.alarms.values())),
        )

    def _filters(self) -> None:
        for plan in planning.log_filters():
            aws.cloudwatch.LogMetricFilter(
                f"{self._name}-{plan.key}",
                name=planning.rule_name(self._args.names, plan.key),
                log_group_name=self._args.system_log_group,
                pattern=plan.pattern,
                metric_transformation=aws.cloudwatch.LogMetricFilterMetricTransformationArgs(
                    name=plan.metric, namespace=self._args.names.metric_namespace, value="1", default_value="0"
                ),
                opts=child(self),
            )

    def _rule(self, plan: planning.EventRule) -> None:
        rule = aws.cloudwatch.EventRule(
            f"{self._name}-{plan.key}",
            name=planning.rule_name(self._args.names, plan.key),
            description=plan.description,
            event_pattern=plan.pattern or None,
            schedule_expression=plan.schedule or None,
            tags=dict(self._args.tags),
            opts=child(self),
        )
        aws.cloudwatch.EventTarget(
            f"{self._name}-{plan.key}-to-router",
            rule=rule.name,
            target_id="router",
            arn=self._args.router_queue_arn,
            opts=child(self),
        )


def _queries(alarm: plans.Alarm) -> list[aws.cloudwatch.MetricAlarmMetricQueryArgs]:
    """The metrics, then what is computed of them. A Metrics Insights query stands alone and has a period of its own."""
    metrics = [
        aws.cloudwatch.MetricAlarmMetricQueryArgs(
            id=metric.id,
            metric=aws.cloudwatch.MetricAlarmMetricQueryMetricArgs(
                namespace=metric.namespace,
                metric_name=metric.name,
                dimensions=dict(metric.dimensions),
                stat=metric.stat,
                period=alarm.period_s,
            ),
            return_data=not alarm.expression,
        )
        for metric in alarm.metrics
    ]
    if not alarm.expression:
        return metrics
    own_period = None if alarm.metrics else alarm.period_s
    whole = aws.cloudwatch.MetricAlarmMetricQueryArgs(
        id="q1", expression=alarm.expression, label=alarm.name, period=own_period, return_data=True
    )
    return [*metrics, whole]
