"""Alarms, log filters, event rules and the dashboard."""

import pulumi
import pulumi_aws as aws

from infra.planning import alarms as plans
from infra.planning import monitoring as planning
from infra.planning.instance_types import CAPACITY_BLOCK

from .base import ClusterPlan, Component


class Monitoring(Component):
    """Alarms go to the alert router by EventBridge; those about the monitoring itself go to the topic as well."""

    def __init__(
        self,
        name: str,
        plan: ClusterPlan,
        topic_arn: pulumi.Input[str],
        router_queue_arn: pulumi.Input[str],
        system_log_group: pulumi.Input[str],
        idle_policy_arn: pulumi.Input[str] | None = None,
    ) -> None:
        """router_queue_arn: where events go. system_log_group: the name of the group with the nodes' kernel messages.

        idle_policy_arn: the scaling policy that the idle alarm starts; None where it only rings.
        """
        super().__init__(name, plan)
        self._topic_arn, self._queue_arn, self._idle_policy_arn = topic_arn, router_queue_arn, idle_policy_arn
        nodes, names = plan.settings.nodes, plan.names
        # Nodes have the CloudWatch agent; those of Kubernetes are watched by Prometheus.
        agent = not plan.settings.on_kubernetes
        planned = plans.alarms(names, nodes, plan.settings.monitoring.thresholds, agent)
        whole = plans.composite(names, planned)
        self.alarms = {alarm.name: self._alarm(alarm) for alarm in planned}
        self.unhealthy = self._composite(whole)
        self._filters(system_log_group)
        capacity = nodes.capacity
        block = capacity.reservation_id if capacity.kind == CAPACITY_BLOCK else None
        for rule in planning.rules(names, block or "", agent):
            self._rule(rule)
        self.dashboard = aws.cloudwatch.Dashboard(
            f"{name}-dashboard",
            dashboard_name=names.dashboard,
            dashboard_body=planning.dashboard(names, plan.place, planned, whole),
            opts=self.child(),
        )
        self.register_outputs({"unhealthy": self.unhealthy.arn, "dashboard": names.dashboard})

    def _alarm(self, alarm: plans.Alarm) -> aws.cloudwatch.MetricAlarm:
        actions = [self._topic_arn] if alarm.direct else []
        return aws.cloudwatch.MetricAlarm(
            f"{self._name}-{alarm.name.removeprefix(self.names.cluster + '-')}",
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
            tags=self.tags(),
            opts=self.child(),
        )

    def _starts(self, alarm: plans.Alarm) -> list[pulumi.Input[str]]:
        policy = self._idle_policy_arn
        return [policy] if policy is not None and alarm.name.endswith(plans.IDLE) else []

    def _composite(self, plan: plans.Composite) -> aws.cloudwatch.CompositeAlarm:
        return aws.cloudwatch.CompositeAlarm(
            f"{self._name}-cluster-unhealthy",
            alarm_name=plan.name,
            alarm_description=plan.description,
            alarm_rule=plan.rule,
            alarm_actions=[self._topic_arn],
            ok_actions=[self._topic_arn],
            tags=self.tags(),
            # The rule names its alarms: they must be there first, and go last.
            opts=self.child(depends_on=list(self.alarms.values())),
        )

    def _filters(self, group: pulumi.Input[str]) -> None:
        for plan in planning.log_filters():
            aws.cloudwatch.LogMetricFilter(
                f"{self._name}-{plan.key}",
                name=planning.rule_name(self.names, plan.key),
                log_group_name=group,
                pattern=plan.pattern,
                metric_transformation=aws.cloudwatch.LogMetricFilterMetricTransformationArgs(
                    name=plan.metric, namespace=self.names.metric_namespace, value="1", default_value="0"
                ),
                opts=self.child(),
            )

    def _rule(self, plan: planning.EventRule) -> None:
        rule = aws.cloudwatch.EventRule(
            f"{self._name}-{plan.key}",
            name=planning.rule_name(self.names, plan.key),
            description=plan.description,
            event_pattern=plan.pattern or None,
            schedule_expression=plan.schedule or None,
            tags=self.tags(),
            opts=self.child(),
        )
        aws.cloudwatch.EventTarget(
            f"{self._name}-{plan.key}-to-router",
            rule=rule.name,
            target_id="router",
            arn=self._queue_arn,
            opts=self.child(),
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
