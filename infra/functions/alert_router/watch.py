"""The dead man's handle: which running nodes have stopped to report, looked at on a schedule.

An alarm on a fleet's metric cannot see that one node of many went silent: its time series just ends. So running
nodes (EC2) are compared with nodes that report (CloudWatch), and the number of silent ones becomes a metric. That
the look itself takes place is a metric as well, whose absence is an alarm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from .nodes import Fleet, Node

HEARTBEAT = "mem_used_percent"
"""Every node's agent reports it, whatever the hardware, rolled up by InstanceId (flightline_node/cwagent.py)."""
SILENT_AFTER = timedelta(minutes=10)
BOOT_GRACE = timedelta(minutes=20)
PERIOD_S = 60
QUERIES = 500
"""GetMetricData's limit. Source: AWS API reference."""


@dataclass(frozen=True)
class Seen:
    """What a look found."""

    silent: tuple[Node, ...]
    reporting: tuple[Node, ...]
    young: tuple[Node, ...]


def look(fleet: Fleet, cloudwatch: Any, namespace: str, now: datetime | None = None) -> Seen:
    """Compare the running nodes with those that report."""
    moment = now or datetime.now(timezone.utc)
    nodes = sorted(fleet.running(), key=lambda node: node.instance_id)
    alive = _reporting(cloudwatch, namespace, [node.instance_id for node in nodes], moment)
    born = (moment - BOOT_GRACE).timestamp()
    silent = [node for node in nodes if node.instance_id not in alive]
    return Seen(
        tuple(node for node in silent if node.launched_s <= born),
        tuple(node for node in nodes if node.instance_id in alive),
        tuple(node for node in silent if node.launched_s > born),
    )


def _reporting(cloudwatch: Any, namespace: str, instance_ids: Sequence[str], now: datetime) -> set[str]:
    alive: set[str] = set()
    for start in range(0, len(instance_ids), QUERIES):
        chunk = instance_ids[start : start + QUERIES]
        queries = [_query(number, namespace, instance) for number, instance in enumerate(chunk)]
        request = {"MetricDataQueries": queries, "StartTime": now - SILENT_AFTER, "EndTime": now}
        for page in cloudwatch.get_paginator("get_metric_data").paginate(**request):
            alive |= {chunk[int(found["Id"][1:])] for found in page["MetricDataResults"] if found.get("Values")}
    return alive


def _query(number: int, namespace: str, instance_id: str) -> dict[str, Any]:
    metric = {
        "Namespace": namespace,
        "MetricName": HEARTBEAT,
        "Dimensions": [{"Name": "InstanceId", "Value": instance_id}],
    }
    return {"Id": f"m{number}", "MetricStat": {"Metric": metric, "Period": PERIOD_S, "Stat": "SampleCount"}}
