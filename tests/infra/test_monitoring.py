"""Alarms, filters, rules and the dashboard: what they look at and whom they tell.

No CloudWatch evaluates the queries here: their form is checked against the documented one.
"""

import dataclasses
import json
import os
import re
from pathlib import Path
from typing import Any

import botocore.session
import botocore.validate
import jsonschema
import pytest

from flightline.cloud.functions.alert_router import watch
from flightline.cloud.signals import alarm_prefix
from flightline.healing.journal import times
from flightline_node.know import expected
from flightline_node.know.catalog import xid
from flightline_node.tell import cwagent, training_run
from flightline_node.watch import report
from infra.planning import alarms as plans
from infra.planning import monitoring as planning
from tests.infra import engine, program, stacks
from tests.unit.healing.made import T0, H, incident, through
from training import journal

STACK = "p5-reservation"
SCHEMA = Path(__file__).with_name("cwagent_schema.json")
AGENTS_OWN = "CWAGENT_SCHEMA"
QUERY = re.compile(
    r'SELECT (AVG|COUNT|MAX|MIN|SUM)\(\w+\) FROM SCHEMA\("[^"]+", (InstanceId|job)\) GROUP BY \2'
    r" ORDER BY (?:AVG|COUNT|MAX|MIN|SUM)\(\) (?:ASC|DESC)"
)
"""The form of a query for an alarm with a contributor per node or job: GROUP BY and ORDER BY are both wanted."""
FULL = {"gpu_power_w": 720}


def _made(stack: str = STACK, /, **limits: int) -> list[plans.Alarm]:
    settings = stacks.settings(stack)
    thresholds = dataclasses.replace(settings.monitoring.thresholds, **limits)
    return plans.alarms(stacks.planned_names(stack), settings.nodes, thresholds)


def _by_key(made: list[plans.Alarm]) -> dict[str, plans.Alarm]:
    cluster = stacks.planned_names(STACK).cluster
    return {alarm.name.removeprefix(f"{cluster}-"): alarm for alarm in made}


def test_every_subject_has_an_alarm():
    keys = set(_by_key(_made(**FULL)))
    wanted = {"cpu", "memory", "disk", "disk-busy", "net-err-in", "net-drop-in", "gpu-utilization", "gpu-temperature"}
    wanted |= {"gpu-memory", "gpu-power", "efa-retrans-timeout-events", "efa-rx-dropped", "xid-fatal"}
    assert {f"node-{key}" for key in wanted} <= keys
    assert {"monitor-silent", "monitor-nodes-silent", "monitor-dead-letters", "monitor-bad-events"} <= keys
    assert "monitor-alerts-lost" in keys, "a webhook that was revoked must not silence anybody unnoticed"


def test_a_fleets_alarm_has_a_state_per_node_and_no_search():
    for alarm in _made(**FULL):
        assert "SEARCH" not in alarm.expression
        if not alarm.metrics:
            assert QUERY.fullmatch(alarm.expression), alarm.expression


def test_thresholds_come_from_the_stack():
    made = _by_key(_made(gpu_temperature_c=77, cpu_percent=55, network_errors_per_minute=7, disk_busy_percent=50))
    assert made["node-gpu-temperature"].threshold == 77
    assert made["node-cpu"].threshold == 55
    assert made["node-net-err-in"].threshold == 7 * 5, "per minute, but summed over five"
    assert made["node-disk-busy"].threshold == 30_000, "half of a minute, in milliseconds"


def test_a_run_that_costs_too_much_is_told_whatever_its_nodes_are_like():
    made = _by_key(_made(run_cost_usd=500))["monitor-run-cost"]
    assert (made.threshold, made.direct, made.unhealthy) == (500, True, False)
    assert "flightline runs --training" in made.description
    assert "monitor-run-cost" in _by_key(_made()), "on by default"
    assert "monitor-run-cost" not in _by_key(_made(run_cost_usd=0))


def test_the_dashboard_shows_runs_by_what_the_reference_job_and_its_launcher_send():
    names = stacks.planned_names(STACK)
    made = _made()
    shown = planning.dashboard(names, stacks.place(STACK), made, plans.composite(names, made))
    asked = set(re.findall(r"MAX\((Train\w+)\)", shown))
    assert asked == {"TrainCost", "TrainMfu", "TrainEffectiveTime", "TrainTokensPerSecond", "TrainLoss", "TrainDataWait",
                     "TrainOthersWait"}  # fmt: skip
    assert asked - {training_run.COST} <= set(journal.UNITS)


def test_an_alarm_looks_for_the_bad_side():
    made = _by_key(_made())
    assert made["node-gpu-utilization"].comparison == "LessThanThreshold"
    assert "MIN(" in made["node-gpu-utilization"].expression and "ASC" in made["node-gpu-utilization"].expression
    assert made["node-gpu-temperature"].comparison == "GreaterThanThreshold"


def test_a_type_without_gpus_has_no_gpu_alarms_and_power_needs_a_threshold():
    settings = stacks.settings(STACK)
    nodes = dataclasses.replace(settings.nodes, instance_type="trn1.32xlarge", efa=False)
    made = plans.alarms(stacks.planned_names(STACK), nodes, settings.monitoring.thresholds)
    assert not [alarm.name for alarm in made if "-gpu-" in alarm.name or "-efa-" in alarm.name]
    assert "node-gpu-power" not in _by_key(_made(gpu_power_w=0))


@pytest.mark.parametrize(
    "metric", sorted({re.search(r"\((\w+)\)", a.expression).group(1) for a in _made(**FULL) if not a.metrics})
)
def test_the_agent_publishes_what_an_alarm_looks_at(metric):
    """A query for a metric that nobody publishes finds nothing, and nothing never rings."""
    settings = stacks.settings(STACK)
    collected = cwagent.config(cwagent.AgentPlan(settings.nodes.instance_type))["metrics"]["metrics_collected"]
    prefixes = {"nvidia_gpu": "nvidia_smi_", "efa": ""}
    published = {
        prefixes.get(section, f"{section}_") + name
        for section, content in collected.items()
        for name in content.get("measurement", ())
    }
    beat = json.loads(report.beat({"instance_id": "i-0", "host": ""}, "n", {"WatchBlind": True}, {}))
    cost = json.loads(training_run.cost_line("n", "job", "run", 1.0))
    directives = [line["_aws"]["CloudWatchMetrics"][0] for line in (beat, cost)]
    assert metric in published | {one["Name"] for directive in directives for one in directive["Metrics"]}
    assert cost["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["job"]], "what the query groups by"
    assert watch.HEARTBEAT in published


@pytest.mark.parametrize("per_device", [True, False])
def test_nothing_is_dropped_that_no_roll_up_replaces(per_device):
    """The agent rolls up to InstanceId only what has more dimensions; the heartbeat has no other and must stay."""
    plan = cwagent.AgentPlan("p5.48xlarge", per_device=per_device)
    collected = cwagent.config(plan)["metrics"]["metrics_collected"]
    dropping = {name for name, section in collected.items() if "drop_original_metrics" in section}
    assert dropping == (set() if per_device else {"cpu", "disk", "diskio", "net", "nvidia_gpu", "efa"})
    assert watch.HEARTBEAT.startswith("mem_")


def test_silence_rings():
    made = _by_key(_made())
    silent = made["monitor-silent"]
    assert silent.comparison == "LessThanThreshold"
    assert silent.missing == "missing" and silent.tells_no_data, "at the first `up` there was no look yet"
    assert not silent.unhealthy, "the composite alarm reads ALARM only"
    assert silent.direct, "the router cannot tell that the router is dead"
    assert silent.metrics[0].name == "WatchRuns"
    assert made["monitor-nodes-silent"].metrics[0].name == "SilentNodes"


def test_a_node_without_its_watcher_rings():
    """A query over the fleet cannot: the time series of one node of many just ends. So the look's number is the metric."""
    made = _by_key(_made())
    unwatched = made["monitor-nodes-unwatched"]
    assert not unwatched.expression and unwatched.metrics[0].name == "UnwatchedNodes"
    assert (unwatched.threshold, unwatched.comparison) == (0, "GreaterThanThreshold")
    assert unwatched.missing == "notBreaching", "no look yet at the first `up`"
    assert unwatched.unhealthy, "what nobody watches cannot be trusted with a job"
    assert "WatchBlind" in made["node-watch-blind"].expression
    assert watch.BEAT == report.METRIC


def test_what_watches_the_router_does_not_need_it():
    prefix = alarm_prefix(stacks.planned_names(STACK).cluster)
    for alarm in _made():
        assert alarm.direct != alarm.name.startswith(prefix) or alarm.name.endswith(("nodes-silent", "nodes-unwatched"))


def test_the_composite_rings_on_any_that_matters_and_only_those():
    made = _made(**FULL)
    rule = plans.composite(stacks.planned_names(STACK), made).rule
    named = set(re.findall(r'ALARM\("([^"]+)"\)', rule))
    assert named == {alarm.name for alarm in made if alarm.unhealthy}
    assert not any(name.endswith("gpu-utilization") for name in named), "an idle cluster is not an unhealthy one"


def test_a_composite_beyond_its_limits_is_refused():
    many = [plans.Alarm(f"a{number}", "", "", 0) for number in range(101)]
    with pytest.raises(ValueError, match="101 alarms"):
        plans.composite(stacks.planned_names(STACK), many)
    with pytest.raises(ValueError, match="characters"):
        plans.composite(stacks.planned_names(STACK), [plans.Alarm("x" * 250, "", "", 0)] * 50)


def _matches(line: str) -> set[str]:
    """Keys of the log filters that take a line: a term is searched, a regular expression (between %) is run.

    CloudWatch's own dialect is smaller than Python's; test_filters_stay_in_the_dialect looks after that.
    """
    found = set()
    for plan in planning.log_filters():
        if plan.pattern.startswith("%"):
            if re.search(plan.pattern.strip("%"), line):
                found.add(plan.key)
        elif plan.pattern.strip('"') in line:
            found.add(plan.key)
    return found


XID, SXID = "NVRM: Xid (PCI:0000:65:00):", "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0):"


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        # Written by hand in the driver's documented form (docs.nvidia.com/deploy/xid-errors).
        (f"{XID} 79, pid=1234, GPU has fallen off the bus.", {"xid", "xid-fatal"}),
        ("NVRM: Xid (PCI:0000:65:00 GPU-I:05 GPU-CI:02): 79, pid=1, GPU has fallen off the bus.", {"xid", "xid-fatal"}),
        (f"{XID} 31, pid=46, Ch 79, engine (GPC 0) 48, intr", {"xid"}),
        (f"{XID} 13, pid=79, Graphics SM Warp Exception", {"xid"}),
        (f"{XID} 179, pid=1, no such code", {"xid"}),
        (f"{XID} 145, RLW_REMAP Nonfatal XC0 i0 Link 00", {"xid"}),
        (f"{XID} 145, RLW_REMAP Fatal XC0 i0 Link 00", {"xid", "xid-decoded"}),
        (f"{XID} 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", {"xid", "xid-decoded"}),
        (f"{XID} 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", {"xid"}),
        (f"{SXID} 12028, Fatal, Link 32 egress non-posted PRIV error", {"sxid-fatal"}),
        (f"{SXID} 12028, Non-fatal, Link 32 egress", set()),
        ("systemd[1]: Started a unit that says 79, and Fatal", set()),
    ],
)
def test_filters_count_what_is_fatal(line, keys):
    assert _matches(line) == keys


def test_every_fatal_code_of_the_catalogue_is_filtered():
    fatal = [code for code, entry in xid.table().items() if entry.status == "FAIL"]
    assert fatal
    for code in fatal:
        assert "xid-fatal" in _matches(f"NVRM: Xid (PCI:0000:65:00): {code}, pid=1"), code


def test_filters_stay_in_the_dialect():
    """CloudWatch Logs: alphanumerics and few signs, no parentheses, 1,024 characters, five such filters in a group."""
    regexes = [plan.pattern for plan in planning.log_filters() if plan.pattern.startswith("%")]
    assert len(regexes) <= 5
    for pattern in regexes:
        assert len(pattern) <= 1024
        assert re.fullmatch(r"[A-Za-z0-9_#=@/;,\-^$?\[\]{}|\\*+.]*", pattern.strip("%")), pattern
        assert "[^" not in pattern, "the documentation has no negated classes"


def test_rules_ask_for_every_kind_of_event():
    rules = {rule.key: rule for rule in planning.rules(stacks.planned_names(STACK))}
    types = {kind for rule in rules.values() if rule.pattern for kind in json.loads(rule.pattern)["detail-type"]}
    assert {
        "AWS Health Event",
        "EC2 Spot Instance Interruption Warning",
        "EC2 Instance Rebalance Recommendation",
        "EC2 Instance State-change Notification",
        "EC2 Instance Launch Unsuccessful",
        "CloudWatch Alarm State Change",
        "CloudWatch Alarm Contributor State Change",
    } <= types
    assert rules["watch"].schedule == "rate(5 minutes)"
    assert json.loads(rules["launch"].pattern)["detail"] == {
        "AutoScalingGroupName": [stacks.planned_names(STACK).node_group]
    }
    prefix = json.loads(rules["alarms"].pattern)["detail"]["alarmName"][0]["prefix"]
    assert any(alarm.name.startswith(prefix) for alarm in _made())


def test_widgets_of_the_dashboard_do_not_overlap():
    names, made = stacks.planned_names(STACK), _made(**FULL)
    body = json.loads(planning.dashboard(names, stacks.place(STACK), made, plans.composite(names, made)))
    taken: set[tuple[int, int]] = set()
    for widget in body["widgets"]:
        cells = {(widget["x"] + x, widget["y"] + y) for x in range(widget["width"]) for y in range(widget["height"])}
        assert not cells & taken and all(x < 24 for x, _ in cells)
        taken |= cells
    assert {widget["type"] for widget in body["widgets"]} == {"alarm", "metric", "log"}
    (numbers,) = [widget["properties"]["metrics"] for widget in body["widgets"] if "stat" in widget["properties"]]
    assert {row[1] for row in numbers if row[-1] == {"stat": "Sum"}} == {"Xids", "FatalXids"}, "a line counts one"
    (healing,) = [one["properties"]["metrics"] for one in body["widgets"] if one["properties"]["title"] == "Healing"]
    over = through(
        dataclasses.replace(incident(), known_at=T0), H.QUARANTINED, H.DRAINED, H.REPAIRED, H.VERIFIED, H.RETURNED
    )
    assert {row[1] for row in healing} == {name for name, *_ in times.numbers([over])}


def monitored(stack: str) -> engine.Run:
    return program.run(stack, changes={"thresholdGpuPowerW": FULL["gpu_power_w"]})


@pytest.fixture(scope="module")
def run() -> engine.Run:
    made = monitored(STACK)
    assert made.error is None, made.error
    return made


def _request(props: dict) -> dict:
    queries = []
    for query in props["metricQueries"]:
        query = dict(query)
        metric = query.pop("metric", None)
        made = {key[:1].upper() + key[1:]: value for key, value in query.items()}
        if metric:
            dimensions = [{"Name": name, "Value": value} for name, value in (metric.get("dimensions") or {}).items()]
            inner = {"Namespace": metric["namespace"], "MetricName": metric["metricName"], "Dimensions": dimensions}
            made["MetricStat"] = {"Metric": inner, "Period": int(metric["period"]), "Stat": metric["stat"]}
        if "Period" in made:
            made["Period"] = int(made["Period"])
        queries.append(made)
    return {
        "AlarmName": props["name"],
        "AlarmDescription": props["alarmDescription"],
        "Metrics": queries,
        "Threshold": float(props["threshold"]),
        "ComparisonOperator": props["comparisonOperator"],
        "EvaluationPeriods": int(props["evaluationPeriods"]),
        "DatapointsToAlarm": int(props["datapointsToAlarm"]),
        "TreatMissingData": props["treatMissingData"],
        "AlarmActions": props.get("alarmActions", []),
    }


def test_alarms_are_requests_that_the_api_model_takes(run):
    """Moto lacks Metrics Insights and composite alarms; botocore's model of the API is the next best judge."""
    model = botocore.session.get_session().get_service_model("cloudwatch")
    shape = model.operation_model("PutMetricAlarm").input_shape
    alarms = run.of("aws:cloudwatch/metricAlarm:MetricAlarm")
    assert len(alarms) == len(_made(**FULL))
    for alarm in alarms:
        request = _request(alarm.props)
        report = botocore.validate.ParamValidator().validate(request, shape)
        assert not report.has_errors(), report.generate_report()
        assert sum(bool(query.get("ReturnData")) for query in request["Metrics"]) == 1
        assert len(request["Metrics"]) <= 10, "an alarm's arithmetic takes ten metrics"
    (whole,) = run.of("aws:cloudwatch/compositeAlarm:CompositeAlarm")
    asked = {
        "AlarmName": whole.props["alarmName"],
        "AlarmRule": whole.props["alarmRule"],
        "AlarmActions": whole.props["alarmActions"],
    }
    shape = model.operation_model("PutCompositeAlarm").input_shape
    assert not botocore.validate.ParamValidator().validate(asked, shape).has_errors()


def test_only_alarms_about_the_monitoring_tell_the_topic_themselves(run):
    direct = {alarm.name for alarm in _made(**FULL) if alarm.direct}
    told = {a.props["name"] for a in run.of("aws:cloudwatch/metricAlarm:MetricAlarm") if a.props.get("alarmActions")}
    assert told == direct


def test_every_rule_ends_in_the_routers_queue(run):
    rules = run.of("aws:cloudwatch/eventRule:EventRule")
    targets = run.of("aws:cloudwatch/eventTarget:EventTarget")
    assert {target.props["rule"] for target in targets} == {rule.props["name"] for rule in rules}
    assert {target.props["arn"] for target in targets} == {run.one("functions-events").arn}


def _schemas() -> list[dict[str, Any]]:
    """Ours in small; and the agent's own where a file of it is named, which is not ours to ship."""
    files = [SCHEMA, *(Path(os.environ[AGENTS_OWN]) for _ in range(AGENTS_OWN in os.environ))]
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


@pytest.mark.parametrize("instance_type", [*expected.known_types(), expected.NO_TYPE])
@pytest.mark.parametrize("kernel_log", ["journald", "/var/log/kern.log"])
@pytest.mark.parametrize("per_device", [True, False])
def test_the_agents_configuration_fits_its_schema(instance_type, kernel_log, per_device):
    plan = cwagent.AgentPlan(instance_type, "Flightline/c", "us-east-1", per_device=per_device, kernel_log=kernel_log)
    made = cwagent.config(plan)
    for schema in _schemas():
        jsonschema.validate(made, schema)


@pytest.mark.parametrize(
    ("instance_type", "gpus", "efa"),
    [
        ("p5.48xlarge", True, True),
        ("g6.12xlarge", True, True),
        ("g4dn.xlarge", True, False),
        ("trn1.32xlarge", False, True),
        ("none", False, False),
    ],
)
def test_the_agent_measures_what_the_type_has(instance_type, gpus, efa):
    sections = cwagent.config(cwagent.AgentPlan(instance_type))["metrics"]["metrics_collected"]
    assert ("nvidia_gpu" in sections, "efa" in sections) == (gpus, efa)


def test_a_link_that_lost_lanes_rings_and_an_idle_gpu_does_not():
    """The agent collects pcie_link_*; the generation falls at idle, the width does not."""
    (width,) = [alarm for alarm in _made() if alarm.name.endswith("gpu-pcie-width")]
    assert width.threshold == 16 and width.comparison == "LessThanThreshold" and width.unhealthy
    assert "MIN(nvidia_smi_pcie_link_width_current)" in width.expression
    assert not [alarm for alarm in _made(**FULL) if "link_gen" in alarm.expression]


def test_the_end_of_the_looks_is_told_and_nothing_before_the_first_one(run):
    alarms = {one.props["name"]: one.props for one in run.of("aws:cloudwatch/metricAlarm:MetricAlarm")}
    told = [name for name, props in alarms.items() if props.get("insufficientDataActions")]
    assert [name.rpartition("-monitor-")[2] for name in told] == ["silent"]


@pytest.mark.parametrize("stack", stacks.STACKS)
def test_an_example_names_its_account(stack):
    assert stacks.config(stack)["aws:allowedAccountIds"] == [stacks.ACCOUNT]


def test_only_the_end_of_the_stacks_own_block_is_told():
    names = stacks.planned_names(STACK)
    assert "block" not in {rule.key for rule in planning.rules(names)}
    (rule,) = [rule for rule in planning.rules(names, "cr-0123456789abcdef0") if rule.key == "block"]
    pattern = json.loads(rule.pattern)
    assert pattern["detail-type"] == ["Capacity Block Reservation Expiration Warning"]
    assert pattern["detail"] == {"capacity-reservation-id": ["cr-0123456789abcdef0"]}
    made = [
        one.props["eventPattern"]
        for one in monitored("p5en-capacity-block").of("aws:cloudwatch/eventRule:EventRule")
        if one.name.endswith("-block")
    ]
    reservation = stacks.values("p5en-capacity-block")["capacityReservationId"]
    assert [reservation in pattern for pattern in made] == [True]
