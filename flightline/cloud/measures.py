"""Numbers of a cluster as CloudWatch metrics, in the namespace that its alarms and dashboard look at."""

from __future__ import annotations

from collections.abc import Iterable

from .clients import Clients
from .signals import PERCENTILE


def put(clients: Clients, namespace: str, values: Iterable[tuple[str, float, str, str]]) -> None:
    """Metric, value, unit, percentile of each; the namespace ends with the cluster. Raises botocore's errors."""
    cluster = {"Name": "Cluster", "Value": namespace.rpartition("/")[2]}
    data = []
    for name, value, unit, percentile in values:
        more = [{"Name": PERCENTILE, "Value": percentile}] if percentile else []
        data.append({"MetricName": name, "Value": value, "Unit": unit, "Dimensions": [cluster, *more]})
    clients.get("cloudwatch").put_metric_data(Namespace=namespace, MetricData=data)
