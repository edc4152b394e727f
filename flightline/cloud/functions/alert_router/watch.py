"""The dead man's handle: which running nodes have stopped to report, or to be watched, looked at on a schedule.

An alarm on a fleet's metric cannot see that one node of many went silent: its time series just ends. So running
nodes (EC2) are compared with nodes that report (CloudWatch), and the number of silent ones becomes a metric. That
the look itself takes place is a metric as well, whose absence is an alarm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from .nodes import KnownNode, NodeLookup

HEARTBEAT = "mem_used_percent"
"""Every node's agent reports it, whatever the hardware, rolled up by InstanceId (flightline_node/cwagent.py)."""
BEAT = "WatchBeat"
"""The heartbeat of a node's watcher (flightline_node/watch/report.py), by InstanceId."""
GPU_USE = "nvidia_smi_utilization_gpu"
SILENT_AFTER = timedelta(minutes=10)
BOOT_GRACE = timedelta(minutes=20)
WATCHED_WITHIN = timedelta(days=1)
WATCHED_FOR = timedelta(hours=1)
"""So long the first nodes of a fleet may have watchers before every node must: it is configured node by node."""
PERIOD_S, LONG_PERIOD_S = 60, 900
QUERIES = 500
"""GetMetricData's limit. Source: AWS API reference."""


@dataclass(frozen=True)
class WatchLook:
    """What a look found. unwatched: their agent reports, their watcher does not; watched: it does."""

    silent: tuple[KnownNode, ...]
    reporting: tuple[KnownNode, ...]
    young: tuple[KnownNode, ...]
    unwatched: tuple[KnownNode, ...] = ()
    watched: tuple[KnownNode, ...] = ()


def look(fleet: NodeLookup, cloudwatch: Any, namespace: str, now: datetime | None = None) -> WatchLook:
    """Compare the running nodes with those that report, and with those whose watcher beats."""
    moment = now or datetime.now(timezone.utc)
    nodes = sorted(fleet.running(), key=lambda node: node.instance_id)
    alive = _reporting(cloudwatch, namespace, [node.instance_id for node in nodes], moment)
    born = (moment - BOOT_GRACE).timestamp()
    silent = [node for node in nodes if node.instance_id not in alive]
    reporting = [node for node in nodes if node.instance_id in alive]
    beating = _recent(cloudwatch, namespace, [node.instance_id for node in reporting], moment, (BEAT, "SampleCount"))
    still = [node for node in reporting if node.instance_id not in beating and node.launched_s <= born]
    return WatchLook(
        tuple(node for node in silent if node.launched_s <= born),
        tuple(reporting),
        tuple(node for node in silent if node.launched_s > born),
        tuple(_unwatched(cloudwatch, namespace, nodes, still, moment)),
        tuple(node for node in reporting if node.instance_id in beating),
    )


def _unwatched(
    cloudwatch: Any, namespace: str, nodes: Sequence[KnownNode], still: Sequence[KnownNode], now: datetime
) -> list[KnownNode]:
    """Of nodes whose watcher says nothing those that had one, or all where the fleet has had watchers for an hour.

    A site without watchers is told nothing, and neither is one whose nodes are just being configured.
    """
    if not still:
        return []
    ids = [node.instance_id for node in nodes]
    beats = _points(cloudwatch, namespace, ids, (now - WATCHED_WITHIN, now), (BEAT, "SampleCount"), LONG_PERIOD_S)
    # A stamp is the beginning of its period: the beat may have come at its end.
    begun = now - WATCHED_FOR - timedelta(seconds=LONG_PERIOD_S)
    expected = any(at <= begun for points in beats.values() for at, _ in points)
    return [node for node in still if expected or node.instance_id in beats]


def busiest_gpu_percent(
    cloudwatch: Any, namespace: str, nodes: Sequence[KnownNode], now: datetime | None = None
) -> float | None:
    """The most that any GPU of these nodes was used in the last minutes; None unless every node has measured it."""
    moment = now or datetime.now(timezone.utc)
    ids = [node.instance_id for node in nodes]
    found = _recent(cloudwatch, namespace, ids, moment, (GPU_USE, "Maximum"))
    return max(map(max, found.values())) if ids and len(found) == len(ids) else None


def _reporting(cloudwatch: Any, namespace: str, instance_ids: Sequence[str], now: datetime) -> set[str]:
    return set(_recent(cloudwatch, namespace, instance_ids, now, (HEARTBEAT, "SampleCount")))


def _recent(
    cloudwatch: Any, namespace: str, instance_ids: Sequence[str], now: datetime, what: tuple[str, str]
) -> dict[str, list[float]]:
    """Instance -> its values of the last minutes, without those that have none. what: metric and statistic."""
    points = _points(cloudwatch, namespace, instance_ids, (now - SILENT_AFTER, now), what, PERIOD_S)
    return {instance: [value for _, value in found] for instance, found in points.items()}


def _points(
    cloudwatch: Any,
    namespace: str,
    instance_ids: Sequence[str],
    span: tuple[datetime, datetime],
    what: tuple[str, str],
    period_s: int,
) -> dict[str, list[tuple[datetime, float]]]:
    """Instance -> (beginning of the period, value), without those that have none."""
    values: dict[str, list[tuple[datetime, float]]] = {}
    for start in range(0, len(instance_ids), QUERIES):
        chunk = instance_ids[start : start + QUERIES]
        queries = [_query(number, namespace, instance, what, period_s) for number, instance in enumerate(chunk)]
        request = {"MetricDataQueries": queries, "StartTime": span[0], "EndTime": span[1]}
        for page in cloudwatch.get_paginator("get_metric_data").paginate(**request):
            for found in page["MetricDataResults"]:
                pairs = zip(found.get("Timestamps") or (), found.get("Values") or (), strict=True)
                for pair in pairs:
                    values.setdefault(chunk[int(found["Id"][1:])], []).append(pair)
    return values


def _query(number: int, namespace: str, instance_id: str, what: tuple[str, str], period_s: int) -> dict[str, Any]:
    metric = {
        "Namespace": namespace,
        "MetricName": what[0],
        "Dimensions": [{"Name": "InstanceId", "Value": instance_id}],
    }
    return {"Id": f"m{number}", "MetricStat": {"Metric": metric, "Period": period_s, "Stat": what[1]}}
