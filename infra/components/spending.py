"""The monthly budget and the cost-anomaly alarm."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from flightline.contract import TAG_CLUSTER
from infra.planning.names import Names

from .base import child

STEPS = ((80, "FORECASTED"), (100, "FORECASTED"), (80, "ACTUAL"), (100, "ACTUAL"))
"""Percent of the budget, and whether it is expected or spent."""

ANOMALY_PERCENT_OF_BUDGET = 5
ANOMALY_LEAST_USD = 100


@dataclass(frozen=True)
class SpendingArgs:
    """topic_arn: who is told."""

    names: Names
    monthly_usd: int
    topic_arn: pulumi.Input[str]
    tags: Mapping[str, str]


class Spending(pulumi.ComponentResource):
    """The budget counts the whole account.

    A budget by tag reads zero, and stays silent, until somebody activates the tag for cost allocation.
    """

    def __init__(self, name: str, args: SpendingArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flightline:infra:Spending", name, {}, opts)
        self._name, self._args = name, args
        aws.budgets.Budget(
            f"{name}-budget",
            name=args.names.budget,
            budget_type="COST",
            limit_amount=str(args.monthly_usd),
            limit_unit="USD",
            time_unit="MONTHLY",
            notifications=[self._notification(percent, kind) for percent, kind in STEPS],
            tags=dict(args.tags),
            opts=child(self),
        )
        self._anomalies()
        self.register_outputs({"budget": args.names.budget})

    def _notification(self, percent: int, kind: str) -> aws.budgets.BudgetNotificationArgs:
        return aws.budgets.BudgetNotificationArgs(
            comparison_operator="GREATER_THAN",
            threshold=float(percent),
            threshold_type="PERCENTAGE",
            notification_type=kind,
            subscriber_sns_topic_arns=[self._args.topic_arn],
        )

    def _anomalies(self) -> None:
        cluster = {"Tags": {"Key": TAG_CLUSTER, "Values": [self._args.names.cluster], "MatchOptions": ["EQUALS"]}}
        # An account has one monitor over its services at most, so this one looks at the cluster's tag. It sees
        # something once the tag is activated for cost allocation.
        monitor = aws.costexplorer.AnomalyMonitor(
            # By the cluster, because what it looks at is ignored below.
            f"{self._name}-monitor-{self._args.names.cluster}",
            name=self._args.names.budget,
            monitor_type="CUSTOM",
            monitor_specification=json.dumps(cluster, sort_keys=True),
            tags=dict(self._args.tags),
            # The provider reads it back with the empty members of the API's type as well (aws_ce_anomaly_monitor), and
            # would make a new monitor in each update.
            opts=child(self, ignore_changes=["monitorSpecification"]),
        )
        least = max(ANOMALY_LEAST_USD, self._args.monthly_usd * ANOMALY_PERCENT_OF_BUDGET // 100)
        aws.costexplorer.AnomalySubscription(
            f"{self._name}-anomalies",
            name=self._args.names.budget,
            frequency="IMMEDIATE",
            monitor_arn_lists=[monitor.arn],
            subscribers=[aws.costexplorer.AnomalySubscriptionSubscriberArgs(type="SNS", address=self._args.topic_arn)],
            threshold_expression=aws.costexplorer.AnomalySubscriptionThresholdExpressionArgs(
                dimension=aws.costexplorer.AnomalySubscriptionThresholdExpressionDimensionArgs(
                    key="ANOMALY_TOTAL_IMPACT_ABSOLUTE", match_options=["GREATER_THAN_OR_EQUAL"], values=[str(least)]
                )
            ),
            tags=dict(self._args.tags),
            opts=child(self),
        )
