"""Spot from several types and zones, protection, schedules: what is refused and what is asked of AWS."""

from datetime import datetime, timezone
from unittest import mock

import jinja2
import pytest
import yaml

from flightline import contract
from flightline.cloud.functions.alert_router import watch
from flightline.cloud.signals import BUSIEST_GPU
from flightline_node.act import ending
from infra.config.model import BY_NAME
from infra.planning import alarms, lifecycle
from infra.planning.zones import ZoneOffering
from tests.infra import program, stacks
from tests.infra.plans.test_settings import BLOCK, RESERVATION, SPOT, errors, only
from tests.infra.test_components import gpu_nodes

SINGLE = {"capacityType": "spot", "gpuInstanceType": "g6.xlarge"}


def group(stack="spot", **changes):
    return gpu_nodes(stack, **changes).one("nodes-group")


def test_without_the_new_keys_a_spot_stack_is_as_it_was():
    run = gpu_nodes("spot")
    props = run.one("nodes-group").props
    assert {"mixedInstancesPolicy", "capacityRebalance", "protectFromScaleIn"}.isdisjoint(props)
    assert props["launchTemplate"]["version"] == "$Latest"
    assert run.one("nodes-template").props["instanceMarketOptions"] == {"marketType": "spot"}
    assert "desiredCapacity" not in run.one("nodes-group").ignored
    assert run.of("aws:autoscaling/schedule:Schedule") == []


def test_several_types_are_a_mixed_policy_of_spot_only():
    changes = {**SPOT, "spotInstanceTypes": ["g6.48xlarge"], "spotMaxPriceUsd": "12.5", "spotRebalance": True}
    run = gpu_nodes("spot", **changes)
    props = run.one("nodes-group").props
    policy = props["mixedInstancesPolicy"]
    assert policy["instancesDistribution"] == {
        "onDemandBaseCapacity": 0,
        "onDemandPercentageAboveBaseCapacity": 0,
        "spotAllocationStrategy": "price-capacity-optimized",
        "spotMaxPrice": "12.5",
    }
    wanted = [{"instanceType": "g6e.48xlarge"}, {"instanceType": "g6.48xlarge"}]
    assert policy["launchTemplate"]["overrides"] == wanted
    assert props["capacityRebalance"] is True
    # EC2 Auto Scaling refuses a group whose policy and template both ask for spot.
    assert "launchTemplate" not in props
    assert "instanceMarketOptions" not in run.one("nodes-template").props


def test_a_price_cap_of_one_type_stands_in_the_template():
    options = gpu_nodes("spot", spotMaxPriceUsd="9").one("nodes-template").props["instanceMarketOptions"]
    assert options == {"marketType": "spot", "spotOptions": {"maxPrice": "9"}}


def test_a_group_holds_the_nodes_that_it_ends_and_the_provider_waits_as_long():
    run = gpu_nodes("p5-reservation", drainMinutes=45)
    hook = run.one("nodes-drain").props
    assert hook["lifecycleTransition"] == "autoscaling:EC2_INSTANCE_TERMINATING"
    # Nobody prolongs it: it waits for the jobs' time and for the node's word to come, two hours at most.
    assert (hook["heartbeatTimeout"], hook["defaultResult"]) == (55 * 60, "CONTINUE")
    assert ending.AWS_S + 2 * ending.AGAIN_S < lifecycle.WORD_MIN * 60
    assert lifecycle.hook_s(max(BY_NAME["drainMinutes"].within or ())) == 7200
    assert {run.one("nodes-group").timeouts[word] for word in ("update", "delete")} == {"105m"}


def test_a_group_that_shall_not_wait_has_no_such_hook():
    run = gpu_nodes("p5-reservation", drainMinutes=0)
    assert [one.name for one in run.of("aws:autoscaling/lifecycleHook:LifecycleHook")] == ["nodes-hook"]


def test_nodes_ask_for_the_hook_that_the_stack_makes():
    variables = yaml.safe_load((stacks.ROOT / "inventory/group_vars/aws_ec2/roles.yml").read_text())
    asked = jinja2.Template(variables["flightline_notice_hook"]).render(flightline_stack={"cluster_name": "demo"})
    assert asked == contract.drain_hook("demo")
    assert gpu_nodes("p5-reservation", clusterName="demo").one("nodes-drain").props["name"] == asked


IDLE = {"gpuIdleHours": 3}


@pytest.fixture(scope="module")
def several():
    """A stack with nodes of two types in two zones, which rings when they are idle."""
    run = program.run("spot", changes={**SPOT, **IDLE, "spotZones": 2, "spotInstanceTypes": ["g6.48xlarge"]})
    assert run.error is None
    return run


def test_two_zones_launch_into_both_private_subnets_under_the_policies(several):
    made = {one.name: one.id for one in several.of("aws:ec2/subnet:Subnet")}
    subnets = {made[f"network-private-{number}"] for number in (1, 2)}
    assert set(several.one("nodes-group").props["vpcZoneIdentifiers"]) == subnets


@pytest.mark.parametrize("bought", [BLOCK, RESERVATION], ids=["block", "reservation"])
def test_spot_keys_are_refused_where_no_spot_is_bought(bought):
    found = errors({**bought, "spotInstanceTypes": ["p5.48xlarge"]})
    assert "or spot there" in " ".join(found["spotInstanceTypes"])


def test_types_with_other_efa_interfaces_cannot_share_a_template():
    efa = {"capacityType": "spot", "gpuInstanceType": "p5.48xlarge", "spotInstanceTypes": ["p5en.48xlarge"]}
    only(efa, "spotInstanceTypes", says="EFA interfaces of p5.48xlarge")
    assert errors({**efa, "efa": "off"}) == {}


def test_every_type_stands_in_the_tag_and_in_the_boot_environment(several):
    tags = {tag["key"]: tag["value"] for tag in several.one("nodes-group").props["tags"]}
    assert tags["flightline:instance-type"] == "g6e.48xlarge g6.48xlarge"
    said = program.user_data(several)
    assert (said["INSTANCE_TYPE"], said["OTHER_TYPES"]) == ("g6e.48xlarge", "g6.48xlarge")


@pytest.mark.parametrize(
    ("tag", "seen", "judged_as"),
    [
        ("g6e.48xlarge g6.48xlarge", "g6.48xlarge", "g6.48xlarge"),
        ("g6e.48xlarge g6.48xlarge", "g6.4xlarge", "g6e.48xlarge"),
        ("p5.48xlarge", "p5.4xlarge", "p5.48xlarge"),
    ],
)
def test_the_inventory_takes_a_declared_type_as_it_is_and_no_other(tag, seen, judged_as):
    composed = yaml.safe_load((stacks.ROOT / "inventory" / "aws_ec2.yml").read_text())["compose"]["instance_type"]
    host = {"ec2_instance_type": seen, "ec2_tags": {"flightline:instance-type": tag}}
    assert jinja2.Environment(autoescape=True).compile_expression(composed)(**host) == judged_as


def test_a_second_zone_must_offer_the_type():
    whole = stacks.offer("us-east-1")
    narrow = ZoneOffering(whole.zones, frozenset([whole.zones[0].zone_id]))
    only({**SINGLE, "spotZones": 2}, "spotZones", says="only us-east-1a", lookup=lambda _: narrow)
    assert errors({**SINGLE, "spotZones": 2}, lookup=lambda _: whole) == {}


def test_both_private_blocks_need_room_with_two_zones():
    tight = {"privateSubnetCidrs": ["10.0.101.0/24", "10.0.102.0/28"], "gpuNodeCount": 20}
    assert errors({**SINGLE, **tight, "placementGroup": "none"}) == {}
    only({**SINGLE, **tight, "placementGroup": "none", "spotZones": 2}, "privateSubnetCidrs", says="second block")


def test_nights_and_weekends_scale_to_zero_and_leave_the_limits():
    times = ["0 20 * * MON-FRI = 0", "0 8 * * MON-FRI = 4"]
    run = gpu_nodes("spot", nodeSchedule=times, nodeScheduleTimeZone="Europe/Berlin")
    # The engine is told of them in any order.
    night, morning = sorted(run.of("aws:autoscaling/schedule:Schedule"), key=lambda one: one.name)
    assert (night.props["recurrence"], night.props["desiredCapacity"]) == ("0 20 * * MON-FRI", 0)
    assert (morning.props["desiredCapacity"], morning.props["timeZone"]) == (4, "Europe/Berlin")
    assert all(one.props["minSize"] == -1 and one.props["maxSize"] == -1 for one in (night, morning))
    assert night.props["scheduledActionName"] != morning.props["scheduledActionName"]
    # An update in the night must not start what the schedule has ended.
    assert "desiredCapacity" in run.one("nodes-group").ignored


def idle_alarm(**changes):
    settings = stacks.settings("spot", **changes)
    made = alarms.alarms(stacks.planned_names("spot"), settings.nodes, settings.monitoring.thresholds)
    return [alarm for alarm in made if alarm.name.endswith(alarms.IDLE)]


def test_idle_hours_ring_only_when_all_of_the_time_was_measured():
    assert idle_alarm() == []
    (alarm,) = idle_alarm(**IDLE)
    assert alarm.period_s * alarm.periods == 3 * 3600 and alarm.datapoints == alarm.periods
    assert (alarm.missing, alarm.comparison, alarm.unhealthy) == (alarms.MISSING_IS_FINE, alarms.BELOW, False)
    assert alarm.metrics[0].name == BUSIEST_GPU and "SELECT" not in alarm.expression, "a query would see three hours"
    # PutMetricAlarm: periods under an hour cover a day at most.
    (longest,) = idle_alarm(gpuIdleHours=24)
    assert longest.period_s * longest.periods <= 86_400


def test_idle_nodes_are_ended_only_by_choice(several):
    """With a schedule beside, which the policies know."""
    (alarm,) = [one for one in several.of("aws:cloudwatch/metricAlarm:MetricAlarm") if one.name.endswith("gpu-idle")]
    assert not alarm.props.get("alarmActions") and several.of("aws:autoscaling/policy:Policy") == []
    assert "desiredCapacity" not in several.one("nodes-group").ignored
    ending = program.run("spot", changes={**IDLE, "gpuIdleScaleIn": True, "nodeSchedule": ["0 20 * * * = 0"]})
    assert ending.error is None
    policy = ending.one("nodes-idle")
    assert (policy.props["adjustmentType"], policy.props["scalingAdjustment"]) == ("ExactCapacity", 0)
    alarms = ending.of("aws:cloudwatch/metricAlarm:MetricAlarm")
    assert [one.name for one in alarms if policy.arn in (one.props.get("alarmActions") or [])] == [alarm.name]
    assert "desiredCapacity" in group(**IDLE, gpuIdleScaleIn=True).ignored


class Metrics:
    """A stand-in for CloudWatch: instance -> values of the GPUs' use. No AWS is involved."""

    def __init__(self, values):
        self.values = values

    def get_paginator(self, _):
        return self

    def paginate(self, MetricDataQueries, **_):
        for query in MetricDataQueries:
            metric = query["MetricStat"]["Metric"]
            assert (metric["MetricName"], query["MetricStat"]["Stat"]) == ("nvidia_smi_utilization_gpu", "Maximum")
            instance = metric["Dimensions"][0]["Value"]
            values = self.values.get(instance, [])
            stamps = [datetime.now(timezone.utc) for _ in values]
            yield {"MetricDataResults": [{"Id": query["Id"], "Timestamps": stamps, "Values": values}]}


@pytest.mark.parametrize(
    ("values", "busiest"),
    [
        ({"i-1": [0.0, 3.0], "i-2": [71.0]}, 71.0),
        ({"i-1": [0.0], "i-2": [0.0]}, 0.0),
        ({"i-1": [0.0]}, None),
        ({}, None),
    ],
    ids=["one works", "idle", "one says nothing", "nobody says anything"],
)
def test_a_node_without_a_measurement_is_not_idle(values, busiest):
    nodes = [mock.Mock(instance_id=name) for name in ("i-1", "i-2")]
    assert watch.busiest_gpu_percent(Metrics(values), "n", nodes) == busiest


def test_no_nodes_are_not_idle_nodes():
    assert watch.busiest_gpu_percent(Metrics({}), "n", []) is None


def test_scale_in_protection_is_asked_for_only_by_choice():
    assert group("dev", scaleInProtection=True).props["protectFromScaleIn"] is True
    assert "protectFromScaleIn" not in group("dev").props


def test_the_memory_alarm_of_several_types_is_for_the_smallest_gpu():
    def threshold(**changes):
        settings = stacks.settings("spot", **{**SPOT, **changes})
        made = alarms.alarms(stacks.planned_names("spot"), settings.nodes, settings.monitoring.thresholds)
        (found,) = [alarm.threshold for alarm in made if alarm.name.endswith("gpu-memory")]
        return found

    assert threshold(spotInstanceTypes=["g6.48xlarge"]) < threshold()


def test_scaling_to_zero_and_back_changes_the_groups_size_and_nothing_else():
    """A placement group or a template that came and went with the count would replace the nodes' neighbourhood."""
    none, many = (
        program.run("dev", changes={"gpuInstanceType": "p5.48xlarge", "amiPin": "", "gpuNodeCount": count})
        for count in (0, 160)
    )
    assert none.error is None
    assert {one.name for one in none.custom} == {one.name for one in many.custom}

    def plain(props):
        return {key: value for key, value in props.items() if key not in ("source", "code")}

    before = [(one.name, plain(one.props)) for one in many.custom]
    changed = {one.name: one.props for one in none.custom if (one.name, plain(one.props)) not in before}
    assert set(changed) == {"nodes-group"}
    assert [changed["nodes-group"][key] for key in ("minSize", "maxSize", "desiredCapacity")] == [0, 0, 0]
