"""What is watched beside the alarms: log filters, event rules, the dashboard. Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flightline.cloud.signals import (
    BLOCK_ENDS,
    DRAIN_PRECISION,
    HELD_NODES,
    LAUNCH_FAILED,
    LAUNCHED,
    OPEN_INCIDENTS,
    PERCENTILE,
    REPORTING_NODES,
    SILENT_NODES,
    TEST_SOURCE,
    TEST_TYPE,
    TIME_TO_DETECT,
    TIME_TO_QUARANTINE,
    TIME_TO_RETURN,
    alarm_prefix,
)
from flightline_node.know.catalog import xid
from infra.planning.alarms import Alarm, Composite, run_query
from infra.planning.names import Names, Place

WATCH_RATE = "rate(5 minutes)"
MAX_FILTER_CHARS = 1024
FATAL, NVLINK5, RECOVERY = "FAIL", "DECODE", "TEXT"


@dataclass(frozen=True)
class LogFilter:
    """A metric filter on a log group: each matching line counts one."""

    key: str
    pattern: str
    metric: str


@dataclass(frozen=True)
class EventRule:
    """An EventBridge rule: either a pattern (JSON) or a schedule."""

    key: str
    description: str
    pattern: str = ""
    schedule: str = ""


def log_filters() -> list[LogFilter]:
    r"""Xids and SXids in the kernel log.

    A filter's regular expression knows no group and may hold few signs (CloudWatch Logs user guide, "Supported
    regular expressions syntax": no parentheses but as \x28 and \x29, no colon by all of its versions, no word of
    negated classes, five such filters per log group), hence dots and codes for the signs of
    "NVRM: Xid (PCI:0000:65:00): 79, ..." and a branch for the codes that differ in their last digit.
    """
    table = xid.table()
    codes = [code for code, entry in table.items() if entry.status == FATAL]
    tens = {code // 10: [str(other % 10) for other in codes if other // 10 == code // 10] for code in codes}
    branches = [f"{_PLACE}{ten or ''}[{''.join(digits)}]," for ten, digits in tens.items()]
    # Their severity is in the line: NVLink 5 errors say Fatal, 154 gives the recovery action as a number.
    nvlink = [_code(code) + ".*Fatal" for code, entry in table.items() if entry.status == NVLINK5]
    recovery = [_code(code) + ".*to.0x[1-9]" for code, entry in table.items() if entry.status == RECOVERY]
    return [
        LogFilter("xid", '"NVRM: Xid"', "Xids"),
        LogFilter("xid-fatal", _regex(branches), "FatalXids"),
        LogFilter("xid-decoded", _regex([*nvlink, *recovery]), "FatalXids"),
        LogFilter("sxid-fatal", _regex([f"S{_PLACE}[0-9]+,.Fatal"]), "FatalXids"),
    ]


def rules(names: Names, block: str = "", agent: bool = True) -> list[EventRule]:
    """Events that the alert router gets. It sorts out other clusters' nodes itself: these events carry no tags.

    block: the capacity block that the nodes are in, "cr-..."; empty without one. agent: nodes send metrics to
    CloudWatch; without, they are of an EKS node group, whose Auto Scaling group EKS names.
    """
    groups: list[Any] = [names.node_group] if agent else [{"prefix": f"eks-{names.node_group}-"}]
    mine = {"alarmName": [{"prefix": alarm_prefix(names.cluster)}]}
    alarms = ["CloudWatch Alarm State Change", "CloudWatch Alarm Contributor State Change"]
    kept_out = "Nodes that could not be launched, or that their boot preflight kept out"
    state, states = ["EC2 Instance State-change Notification"], "running shutting-down stopped stopping terminated"
    health = ("Scheduled changes and hardware events", "aws.health", ["AWS Health Event"], {"service": ["EC2"]})
    return [
        _rule("alarms", "The fleet's alarms and their nodes", "aws.cloudwatch", alarms, mine),
        _rule("maintenance", *health),
        _rule("spot", "Spot interruptions", "aws.ec2", ["EC2 Spot Instance Interruption Warning"]),
        _rule("rebalance", "Rebalance recommendations", "aws.ec2", ["EC2 Instance Rebalance Recommendation"]),
        _rule("state", "Instances that stop or end", "aws.ec2", state, {"state": states.split()}),
        _rule("launch", kept_out, "aws.autoscaling", [LAUNCH_FAILED, LAUNCHED], {"AutoScalingGroupName": groups}),
        _rule("test", "Test alerts of playbooks/monitor.yml", TEST_SOURCE, [TEST_TYPE], {"cluster": [names.cluster]}),
        *([EventRule("watch", "Look for nodes that went silent", schedule=WATCH_RATE)] if agent else []),
        *([_block_rule(block)] if block else []),
    ]


def _block_rule(block: str) -> EventRule:
    detail = {"capacity-reservation-id": [block]}
    return _rule("block", "The capacity block comes to its end", "aws.ec2", [BLOCK_ENDS], detail)


def rule_name(names: Names, key: str) -> str:
    """Physical name of a rule."""
    return f"{names.cluster}-{key}"


def dashboard(names: Names, place: Place, made: Sequence[Alarm], whole: Composite) -> str:
    """The dashboard's body: the alarms on top, then the worst nodes by what the alarms look at."""
    widgets = [_alarm_widget(place, [whole.name, *(alarm.name for alarm in made)])]
    widgets += [_chart(place, alarm, f"{alarm.expression} LIMIT 10") for alarm in made if not alarm.metrics]
    widgets += [_runs_chart(names, place, *one) for one in RUNS if any(not alarm.metrics for alarm in made)]
    widgets += [_numbers(names, place), _healing(names, place), _xid_table(names, place)]
    return json.dumps({"widgets": _placed(widgets)}, separators=(",", ":"))


_PLACE = r"Xid..PCI.{9,40}\x29.."
"""From "Xid (PCI" to the code; an address with its MIG parts has up to 40 characters."""


def _code(code: int) -> str:
    return f"{_PLACE}{code},"


def _regex(branches: Sequence[str]) -> str:
    pattern = "%" + "|".join(branches) + "%"
    if len(pattern) > MAX_FILTER_CHARS:
        raise ValueError(f"filter pattern: saw {len(pattern)} characters; wanted at most {MAX_FILTER_CHARS}")
    return pattern


def _rule(key: str, description: str, source: str, types: list[str], detail: dict[str, Any] | None = None) -> EventRule:
    pattern: dict[str, Any] = {"source": [source], "detail-type": types}
    if detail:
        pattern["detail"] = detail
    return EventRule(key, description, pattern=json.dumps(pattern, sort_keys=True))


def _widget(kind: str, width: int, title: str, **properties: Any) -> dict[str, Any]:
    return {"type": kind, "height": 6, "width": width, "properties": {"title": title, **properties}}


def _alarm_widget(place: Place, names: Sequence[str]) -> dict[str, Any]:
    # A widget shows at most 100 alarms.
    return _widget("alarm", 24, "Alarms", alarms=[place.arn("cloudwatch", f"alarm:{name}") for name in names[:100]])


def _lines(place: Place, title: str, queries: Sequence[str], period_s: int, **more: Any) -> dict[str, Any]:
    """A chart with a line for whatever each query finds."""
    rows = [
        [{"expression": query, "id": f"q{n}", "period": period_s, "region": place.region}]
        for n, query in enumerate(queries, 1)
    ]
    about = {"region": place.region, "view": "timeSeries", "stacked": False, "metrics": rows}
    return _widget("metric", 8, title, **about, **more)


def _chart(place: Place, alarm: Alarm, query: str) -> dict[str, Any]:
    limit = {"horizontal": [{"label": "alarm", "value": alarm.threshold}]}
    return _lines(place, alarm.description.split(":")[0], [query], alarm.period_s, annotations=limit)


RUNS = (
    ("Training: MFU and effective time, percent", ("TrainMfu", "TrainEffectiveTime")),
    ("Training: a step's wait for data and for other ranks, percent", ("TrainDataWait", "TrainOthersWait")),
    ("Training: tokens per second", ("TrainTokensPerSecond",)),
    ("Training: loss", ("TrainLoss",)),
)


def _runs_chart(names: Names, place: Place, title: str, metrics: Sequence[str]) -> dict[str, Any]:
    """A line per job. Of runs that send them: the reference job's journal has the names."""
    return _lines(place, title, [run_query(metric, names.metric_namespace) for metric in metrics], 60)


def _numbers(names: Names, place: Place) -> dict[str, Any]:
    cluster = ["Cluster", names.cluster]
    rows: list[list[Any]] = [[names.metric_namespace, name, *cluster] for name in (REPORTING_NODES, SILENT_NODES)]
    # Each matching line is a 1: only their sum is a number of Xids.
    rows += [[names.metric_namespace, name, {"stat": "Sum"}] for name in ("Xids", "FatalXids")]
    about = {"region": place.region, "view": "singleValue", "stat": "Maximum", "period": 300, "metrics": rows}
    return _widget("metric", 8, "Nodes and Xids", **about)


def _healing(names: Names, place: Place) -> dict[str, Any]:
    """What healing measures of its window; the slowest of a hundred is what people wait for."""
    cluster = [names.metric_namespace, "Cluster", names.cluster]
    counts = [[cluster[0], name, *cluster[1:]] for name in (OPEN_INCIDENTS, HELD_NODES, DRAIN_PRECISION)]
    times = (TIME_TO_DETECT, TIME_TO_QUARANTINE, TIME_TO_RETURN)
    counts += [[cluster[0], name, *cluster[1:], PERCENTILE, "p99"] for name in times]
    return _widget("metric", 8, "Healing", region=place.region, view="singleValue", period=300, metrics=counts)


def _xid_table(names: Names, place: Place) -> dict[str, Any]:
    query = (
        f"SOURCE '{names.system_log_group}' | fields @timestamp, @logStream, @message"
        " | filter @message like /Xid/ | sort @timestamp desc | limit 50"
    )
    return _widget("log", 24, "Xids", region=place.region, view="table", query=query)


def _placed(widgets: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give every widget its place in the 24 columns of a dashboard."""
    placed, x, y, row = [], 0, 0, 0
    for widget in widgets:
        if x + widget["width"] > 24:
            x, y, row = 0, y + row, 0
        placed.append({**widget, "x": x, "y": y})
        x, row = x + widget["width"], max(row, widget["height"])
    return placed
