"""The alarms of a cluster: what they look at, when they ring, whom they tell.

One alarm covers the fleet. A SEARCH expression cannot be used in an alarm; a Metrics Insights query can, and with
GROUP BY and ORDER BY every node is a contributor with a state of its own, also nodes that come later. Sources, read
2026-11: CloudWatch user guide, "Create a CloudWatch alarm based on a Metrics Insights query" (multi time series),
"Using search expressions" (not in alarms), "Metrics Insights quotas" (10,000 metrics looked at, 500 returned: ORDER
BY puts the worst first; one query in a request, so no arithmetic between two), "Create a composite alarm".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from flightline.cloud.signals import (
    ALERTS_LOST,
    BUSIEST_GPU,
    INVALID_EVENTS,
    SILENT_NODES,
    UNWATCHED_NODES,
    WATCH_RUNS,
    alarm_prefix,
)
from flightline_node.know import expected
from flightline_node.tell import cwagent, training_run
from infra.config.model import NodesSettings, Thresholds
from infra.planning.names import FUNCTIONS, Names

ABOVE, BELOW = "GreaterThanThreshold", "LessThanThreshold"
MISSING_IS_FINE, MISSING_IS_NO_DATA = "notBreaching", "missing"
PERIOD_S = 300
IDLE = "gpu-idle"
IDLE_PERIOD_S = 600
MS_PER_PERCENT_OF_A_MINUTE = 600
MAX_RULE_CHARS = 10_240
MAX_CHILDREN = 100


@dataclass(frozen=True)
class Metric:
    """One metric of an alarm's arithmetic. dimensions: name and value pairs."""

    id: str
    namespace: str
    name: str
    stat: str
    dimensions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Alarm:
    """One alarm. expression: a Metrics Insights query, arithmetic over metrics, or empty for the one metric itself.

    unhealthy: part of "cluster unhealthy". direct: tells the topic itself; the others are told by the alert router,
    which names the nodes. What watches the router must not need it.
    """

    name: str
    description: str
    expression: str
    threshold: float
    comparison: str = ABOVE
    period_s: int = PERIOD_S
    periods: int = 3
    datapoints: int = 3
    missing: str = MISSING_IS_FINE
    metrics: tuple[Metric, ...] = ()
    unhealthy: bool = True
    direct: bool = False

    @property
    def tells_no_data(self) -> bool:
        """Whether an end of the data is told. An alarm begins without data: until the first it says nothing."""
        return self.missing == MISSING_IS_NO_DATA


@dataclass(frozen=True)
class Composite:
    """An alarm over alarms."""

    name: str
    description: str
    rule: str


def fleet_query(stat: str, metric: str, namespace: str) -> str:
    """The worst of every node, worst node first. stat: MAX, MIN or SUM."""
    order = "ASC" if stat == "MIN" else "DESC"
    where = f'SCHEMA("{namespace}", InstanceId)'
    # Not a database: names of this project and of the agent, no text from outside.
    return f"SELECT {stat}({metric}) FROM {where} GROUP BY InstanceId ORDER BY {stat}() {order}"  # noqa: S608


def run_query(metric: str, namespace: str) -> str:
    """The most of every training job: metrics of the launcher and of the reference job (docs/training.md)."""
    return f'SELECT MAX({metric}) FROM SCHEMA("{namespace}", job) GROUP BY job ORDER BY MAX() DESC'  # noqa: S608


def alarms(names: Names, nodes: NodesSettings, limits: Thresholds, agent: bool = True) -> list[Alarm]:
    """Every alarm of the stack but the composite. agent: nodes send metrics and logs to CloudWatch."""
    if not agent:
        # An alarm on what nobody sends would be silent for ever, or, where silence rings, never be.
        return [alarm for alarm in _monitor(names) if not _of_nodes(alarm)]
    made = [*_host(names, limits), *_network(names, limits), *_xid(names)]
    hardware = expected.resolve(nodes.instance_type)
    if hardware.has_nvidia_gpu:
        # With several types the smallest memory and the fewest lanes: a query cannot tell the types apart.
        kinds = [expected.resolve(name) for name in nodes.types]
        memory = min((kind.gpu_memory_mib or 0 for kind in kinds), default=0)
        made += [*_gpu(names, limits, memory), *_pcie(names, min(kind.gpu_pcie_lanes or 0 for kind in kinds))]
        made += _idle(names, nodes, limits.gpu_utilization_percent)
    if nodes.efa and hardware.efa_count:
        made += _efa(names, limits)
    return [*made, *_run_cost(names, limits), *_monitor(names)]


def _of_nodes(alarm: Alarm) -> bool:
    """Whether it looks at what the look at the nodes' metrics sends."""
    return any(metric.name in (WATCH_RUNS, SILENT_NODES, UNWATCHED_NODES) for metric in alarm.metrics)


def composite(names: Names, made: Iterable[Alarm]) -> Composite:
    """Rings while any alarm rings that says the cluster cannot be trusted with a job."""
    children = [f'ALARM("{alarm.name}")' for alarm in made if alarm.unhealthy]
    if not children or len(children) > MAX_CHILDREN:
        raise ValueError(f"composite alarm: saw {len(children)} alarms; wanted 1 to {MAX_CHILDREN}")
    rule = " OR ".join(children)
    if len(rule) > MAX_RULE_CHARS:
        raise ValueError(f"composite rule: saw {len(rule)} characters; wanted at most {MAX_RULE_CHARS}")
    return Composite(
        f"{_monitor_prefix(names)}cluster-unhealthy", "Something that a training job needs is wrong.", rule
    )


def _host(names: Names, limits: Thresholds) -> list[Alarm]:
    fleet, busy = partial(_fleet, names), limits.disk_busy_percent
    said = f"busiest disk, milliseconds of a minute ({busy} percent)"
    return [
        fleet("cpu", "MAX", "cpu_usage_active", limits.cpu_percent, "CPU busy, percent", unhealthy=False),
        fleet("memory", "MAX", "mem_used_percent", limits.memory_percent, "memory used, percent"),
        fleet("disk", "MAX", "disk_used_percent", limits.disk_percent, "fullest file system, percent"),
        fleet("disk-busy", "MAX", "diskio_io_time", busy * MS_PER_PERCENT_OF_A_MINUTE, said, unhealthy=False),
        # 1 while it cannot: an alarm on the heartbeat itself is monitor-nodes-unwatched.
        fleet("watch-blind", "MAX", "WatchBlind", 0, "watcher that cannot read the kernel's messages"),
    ]


def _network(names: Names, limits: Thresholds) -> list[Alarm]:
    """Sums over a period; the agent publishes each minute's increase (its net section is delta)."""
    allowed = limits.network_errors_per_minute * PERIOD_S / 60
    return [
        _fleet(names, f"net-{name.replace('_', '-')}", "SUM", f"net_{name}", allowed, f"network {name} in {PERIOD_S} s")
        for name in ("err_in", "err_out", "drop_in", "drop_out")
    ]


def _gpu(names: Names, limits: Thresholds, memory_mib: int | None) -> list[Alarm]:
    fleet = partial(_fleet, names)
    made = [fleet("gpu-temperature", "MAX", "nvidia_smi_temperature_gpu", limits.gpu_temperature_c, "hottest GPU, C")]
    if limits.gpu_memory_percent and memory_mib:
        most, what = memory_mib * limits.gpu_memory_percent / 100, "GPU memory used, MiB"
        made.append(fleet("gpu-memory", "MAX", "nvidia_smi_memory_used", most, what, unhealthy=False))
    if limits.gpu_power_w:
        made.append(fleet("gpu-power", "MAX", "nvidia_smi_power_draw", limits.gpu_power_w, "GPU power, W"))
    if least := limits.gpu_utilization_percent:
        # Half an hour: a job that loads data or writes a checkpoint is not idle. An idle cluster is not unhealthy.
        asked = ("gpu-utilization", "MIN", "nvidia_smi_utilization_gpu", least, "idlest GPU, percent")
        made.append(fleet(*asked, unhealthy=False, periods=6))
    return made


def _idle(names: Names, nodes: NodesSettings, below_percent: int) -> list[Alarm]:
    """Of the whole cluster, and of a metric of the look at the nodes: an alarm on a query sees three hours only.

    Every ten minutes of that time must have been measured: what is not known is not idle. It may end nodes, and any
    node can publish that metric in the cluster's name; so EC2 has to say as well that no node did a core's work.
    """
    hours = nodes.scaling.idle_hours
    if not hours:
        return []
    busiest = Metric("m1", names.metric_namespace, BUSIEST_GPU, "Maximum", (("Cluster", names.cluster),))
    group = (("AutoScalingGroupName", names.node_group),)
    worked = Metric("m2", "AWS/EC2", "CPUUtilization", "Maximum", group)
    core_percent = 100 / max(expected.resolve(name).vcpus or 1 for name in nodes.types)
    text = f"No GPU of the cluster was at {below_percent} percent or more for {hours} hours: idle nodes cost the same."
    return [
        Alarm(
            alarm_prefix(names.cluster) + IDLE,
            text,
            f"IF(m2 < {core_percent:.3g}, m1, 100)",
            below_percent,
            BELOW,
            IDLE_PERIOD_S,
            hours * 3600 // IDLE_PERIOD_S,
            hours * 3600 // IDLE_PERIOD_S,
            metrics=(busiest, worked),
            unhealthy=False,
        )
    ]


def _pcie(names: Names, lanes: int | None) -> list[Alarm]:
    """A GPU on fewer lanes than a good one has; not its generation, which falls when the GPU is idle."""
    if not lanes:
        return []
    metric = "nvidia_smi_pcie_link_width_current"
    return [_fleet(names, "gpu-pcie-width", "MIN", metric, lanes, "narrowest PCIe link of a GPU, lanes")]


def _efa(names: Names, limits: Thresholds) -> list[Alarm]:
    """Sums over a period and all devices; the agent's EFA metrics are deltas (its user guide says so)."""
    allowed = limits.efa_errors_per_minute * PERIOD_S / 60
    errors = [name for name in cwagent.EFA if not name.endswith("_bytes")]
    return [
        _fleet(names, name.replace("_", "-"), "SUM", name, allowed, f"{name} in {PERIOD_S} s", periods=2)
        for name in errors
    ]


def _run_cost(names: Names, limits: Thresholds) -> list[Alarm]:
    """Of each run, told at once: the money is spent, whatever the nodes are like. It has no node for the router."""
    if not limits.run_cost_usd:
        return []
    text = f"Cost of a training run, US dollars: above {limits.run_cost_usd:,}; which: flightline runs --training"
    return [
        Alarm(
            f"{_monitor_prefix(names)}run-cost",
            f"{text} {names.training_table}.",
            run_query(training_run.COST, names.metric_namespace),
            limits.run_cost_usd,
            periods=1,
            datapoints=1,
            unhealthy=False,
            direct=True,
        )
    ]


def _fleet(
    names: Names,
    key: str,
    stat: str,
    metric: str,
    threshold: float,
    what: str,
    *,
    unhealthy: bool = True,
    periods: int = 3,
) -> Alarm:
    side = BELOW if stat == "MIN" else ABOVE
    said = "below" if side == BELOW else "above"
    return Alarm(
        name=alarm_prefix(names.cluster) + key,
        description=f"A node's {what}: {said} {threshold:g} for {periods * PERIOD_S // 60} minutes.",
        expression=fleet_query(stat, metric, names.metric_namespace),
        threshold=threshold,
        comparison=side,
        periods=periods,
        datapoints=periods,
        unhealthy=unhealthy,
    )


def _xid(names: Names) -> list[Alarm]:
    return [
        _one(
            alarm_prefix(names.cluster) + "xid-fatal",
            f"The kernel log has a fatal Xid or SXid; which node: log group {names.system_log_group}.",
            Metric("m1", names.metric_namespace, "FatalXids", "Sum"),
            period_s=60,
        )
    ]


def _monitor(names: Names) -> list[Alarm]:
    """What watches the monitoring: these tell the topic without the router's help."""
    prefix, one = _monitor_prefix(names), partial(_looked, names)
    queue = (("QueueName", names.dead_letter_queue),)
    dead = Metric("m1", "AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", queue)
    lost = "Slack refuses the webhook for good and was not told; put a valid one into the stack's configuration."
    bad = "Events that could not be used; see bad-events/ in the results bucket."
    return [
        one(
            "silent",
            "The look at the nodes has not run for 15 minutes: nobody would notice a silent node.",
            WATCH_RUNS,
            "Sum",
            threshold=1,
            comparison=BELOW,
            # Not breaching: before the first look, at the first `up`, it would ring at once.
            missing=MISSING_IS_NO_DATA,
            periods=3,
            direct=True,
            unhealthy=False,
        ),
        one("nodes-silent", "Running nodes report no metrics; the alert names them.", SILENT_NODES, periods=2),
        one(
            "nodes-unwatched",
            "Running nodes have no watcher that would take them out of service; the alert names them.",
            UNWATCHED_NODES,
            periods=2,
        ),
        _one(
            f"{prefix}dead-letters", "Events could not be handled and wait in the dead-letter queue.", dead, direct=True
        ),
        _functions(names, f"{prefix}bad-events", INVALID_EVENTS, bad),
        _functions(names, f"{prefix}alerts-lost", ALERTS_LOST, lost),
        _errors(names, f"{prefix}function-errors"),
    ]


def _looked(names: Names, key: str, text: str, metric: str, stat: str = "Maximum", **rest: Any) -> Alarm:
    """About the monitoring, by what the look at the nodes sends."""
    seen = Metric("m1", names.metric_namespace, metric, stat, (("Cluster", names.cluster),))
    return _one(_monitor_prefix(names) + key, text, seen, **rest)


def _one(
    name: str,
    description: str,
    metric: Metric,
    *,
    threshold: float = 0,
    comparison: str = ABOVE,
    missing: str = MISSING_IS_FINE,
    periods: int = 1,
    period_s: int = PERIOD_S,
    direct: bool = False,
    unhealthy: bool = True,
) -> Alarm:
    return Alarm(
        name, description, "", threshold, comparison, period_s, periods, periods, missing, (metric,), unhealthy, direct
    )


def _functions(names: Names, name: str, metric: str, description: str) -> Alarm:
    """More than none of what the functions count, over all of them."""
    metrics = tuple(
        Metric(f"m{number}", names.metric_namespace, metric, "Sum", (("Function", function),))
        for number, function in enumerate(FUNCTIONS, 1)
    )
    expression = "SUM([" + ", ".join(f"FILL({one.id}, 0)" for one in metrics) + "])"
    return Alarm(
        name, description, expression, 0, periods=1, datapoints=1, metrics=metrics, unhealthy=False, direct=True
    )


def _errors(names: Names, name: str) -> Alarm:
    """The share of invocations that failed, over all functions."""
    metrics = [
        Metric(f"{letter}{number}", "AWS/Lambda", metric, "Sum", (("FunctionName", names.functions[function]),))
        for number, function in enumerate(FUNCTIONS, 1)
        for letter, metric in (("e", "Errors"), ("i", "Invocations"))
    ]
    errors, calls = (_sum(metrics, letter) for letter in "ei")
    text = "More than 5 percent of the functions' invocations fail."
    expression = f"100 * {errors} / IF({calls} > 0, {calls}, 1)"
    return Alarm(name, text, expression, 5, periods=3, datapoints=2, metrics=tuple(metrics), direct=True)


def _sum(metrics: Sequence[Metric], letter: str) -> str:
    return "SUM([" + ", ".join(f"FILL({m.id}, 0)" for m in metrics if m.id.startswith(letter)) + "])"


def _monitor_prefix(names: Names) -> str:
    return f"{names.cluster}-monitor-"
