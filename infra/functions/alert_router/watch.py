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
GPU_USE = "nvidia_smi_utilization_gpu"
BUSIEST_GPU = "BusiestGpuPercent"
"""Metric: the most that any GPU of the cluster was used since the last looks, in percent."""
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


def busiest_gpu_percent(
    cloudwatch: Any, namespace: str, nodes: Sequence[Node], now: datetime | None = None
) -> float | None:
    """The most that any GPU of these nodes was used in the last minutes; None unless every node has measured it."""
    moment = now or datetime.now(timezone.utc)
    ids = [node.instance_id for node in nodes]
    found = _values(cloudwatch, namespace, ids, moment, (GPU_USE, "Maximum"))
    return max(map(max, found.values())) if ids and len(found) == len(ids) else None


def _reporting(cloudwatch: Any, namespace: str, instance_ids: Sequence[str], now: datetime) -> set[str]:
    return set(_values(cloudwatch, namespace, instance_ids, now, (HEARTBEAT, "SampleCount")))


def _values(
    cloudwatch: Any, namespace: str, instance_ids: Sequence[str], now: datetime, what: tuple[str, str]
) -> dict[str, list[float]]:
    """Instance -> its values of the last minutes, without those that have none. what: metric and statistic."""
    values: dict[str, list[float]] = {}
    for start in range(0, len(instance_ids), QUERIES):
        chunk = instance_ids[start : start + QUERIES]
        queries = [_query(number, namespace, instance, what) for number, instance in enumerate(chunk)]
        request = {"MetricDataQueries": queries, "StartTime": now - SILENT_AFTER, "EndTime": now}
        for page in cloudwatch.get_paginator("get_metric_data").paginate(**request):
            for found in page["MetricDataResults"]:
                if found.get("Values"):
                    values.setdefault(chunk[int(found["Id"][1:])], []).extend(found["Values"])
    return values


def _query(number: int, namespace: str, instance_id: str, what: tuple[str, str]) -> dict[str, Any]:
    metric = {
        "Namespace": namespace,
        "MetricName": what[0],
        "Dimensions": [{"Name": "InstanceId", "Value": instance_id}],
    }
    return {"Id": f"m{number}", "MetricStat": {"Metric": metric, "Period": PERIOD_S, "Stat": what[1]}}
