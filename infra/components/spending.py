"""The monthly budget and the cost-anomaly alarm."""

import json

import pulumi
import pulumi_aws as aws

from flightline.contract import TAG_CLUSTER

from .base import ClusterPlan, Component

STEPS = ((80, "FORECASTED"), (100, "FORECASTED"), (80, "ACTUAL"), (100, "ACTUAL"))
"""Percent of the budget, and whether it is expected or spent."""

ANOMALY_PERCENT_OF_BUDGET = 5
ANOMALY_LEAST_USD = 100


class Spending(Component):
    """The budget counts the whole account.

    A budget by tag reads zero, and stays silent, until somebody activates the tag for cost allocation.
    """

    def __init__(self, name: str, plan: ClusterPlan, topic_arn: pulumi.Input[str]) -> None:
        """topic_arn: who is told."""
        super().__init__(name, plan)
        self._usd, self._topic_arn = plan.settings.budget.monthly_usd, topic_arn
        logical, options = self.named_before("budget")
        aws.budgets.Budget(
            logical,
            name=self.names.budget,
            budget_type="COST",
            limit_amount=str(self._usd),
            limit_unit="USD",
            time_unit="MONTHLY",
            notifications=[self._notification(percent, kind) for percent, kind in STEPS],
            tags=self.tags(),
            opts=options,
        )
        self._anomalies()
        self.register_outputs({"budget": self.names.budget})

    def _notification(self, percent: int, kind: str) -> aws.budgets.BudgetNotificationArgs:
        return aws.budgets.BudgetNotificationArgs(
            comparison_operator="GREATER_THAN",
            threshold=float(percent),
            threshold_type="PERCENTAGE",
            notification_type=kind,
            subscriber_sns_topic_arns=[self._topic_arn],
        )

    def _anomalies(self) -> None:
        cluster = {"Tags": {"Key": TAG_CLUSTER, "Values": [self.names.cluster], "MatchOptions": ["EQUALS"]}}
        # An account has one monitor over its services at most, so this one looks at the cluster's tag. It sees
        # something once the tag is activated for cost allocation.
        # The provider reads what it looks at back with the empty members of the API's type as well
        # (aws_ce_anomaly_monitor), and would make a new monitor in each update.
        logical, options = self.named_before("monitor", "monitorSpecification")
        monitor = aws.costexplorer.AnomalyMonitor(
            logical,
            name=self.names.budget,
            monitor_type="CUSTOM",
            monitor_specification=json.dumps(cluster, sort_keys=True),
            tags=self.tags(),
            opts=options,
        )
        least = max(ANOMALY_LEAST_USD, self._usd * ANOMALY_PERCENT_OF_BUDGET // 100)
        logical, options = self.named_before("anomalies")
        aws.costexplorer.AnomalySubscription(
            logical,
            name=self.names.budget,
            frequency="IMMEDIATE",
            monitor_arn_lists=[monitor.arn],
            subscribers=[aws.costexplorer.AnomalySubscriptionSubscriberArgs(type="SNS", address=self._topic_arn)],
            threshold_expression=aws.costexplorer.AnomalySubscriptionThresholdExpressionArgs(
                dimension=aws.costexplorer.AnomalySubscriptionThresholdExpressionDimensionArgs(
                    key="ANOMALY_TOTAL_IMPACT_ABSOLUTE", match_options=["GREATER_THAN_OR_EQUAL"], values=[str(least)]
                )
            ),
            tags=self.tags(),
            opts=options,
        )
