"""neuron_cores: physical cores whatever the grouping, and a device that lost its own."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from .neurons import TRN1, fixture, node


def judge(facts, instance_type=TRN1):
    return judge_facts("neuron_cores", facts, instance_type)


def test_healthy():
    facts = node()
    for row in facts["neuron_ls"]["devices"]:
        row["lnc"] = None
    assert only(judge(facts), Status.PASS).message == "2 cores on each of 16 devices"


def test_logical_cores_are_counted_as_physical_ones():
    facts = node(neuron_ls=fixture("neuron_ls", "neuron_ls/trn2-48xlarge.json"))
    assert only(judge(facts, "trn2.48xlarge"), Status.PASS).message.endswith(
        "8 cores on each of 16 devices, 2 to a logical core"
    )
    for row in facts["neuron_ls"]["devices"]:
        row.update(cores=8, lnc=1)
    assert status(judge(facts, "trn2.48xlarge")) is Status.PASS
    for row in facts["neuron_ls"]["devices"]:
        row.update(cores=8, lnc=2)
    assert status(judge(facts, "trn2.48xlarge")) is Status.PASS, "older tools print the physical cores"


@pytest.mark.parametrize(
    ("cores", "wanted", "remedy"),
    [
        (0, Status.FAIL, Remedy.REBOOT),
        (1, Status.FAIL, Remedy.REBOOT),
        (4, Status.FAIL, Remedy.FIX_CONFIG),
        (None, Status.UNKNOWN, Remedy.INVESTIGATE),
    ],
)
def test_a_device_with_another_number(cores, wanted, remedy):
    facts = node()
    facts["neuron_ls"]["devices"][5]["cores"] = cores
    finding = only(judge(facts), wanted)
    assert finding.device["name"] == "neuron5" and finding.remedy is remedy
    assert finding.device["serial"] == "5a00ff00c0de0005"


def test_a_group_of_unknown_size_is_unknown_not_a_lost_core():
    facts = node(neuron_ls=fixture("neuron_ls", "neuron_ls/trn2-48xlarge.json"), neuron_monitor=None)
    for row in facts["neuron_ls"]["devices"]:
        row["lnc"] = None
    assert status(judge(facts, "trn2.48xlarge")) is Status.UNKNOWN
    facts["neuron_monitor"] = {"hardware": {"lnc": 2}, "devices": []}
    assert status(judge(facts, "trn2.48xlarge")) is Status.PASS
    facts["neuron_ls"]["devices"][3]["cores"] = 3
    assert only(judge(facts, "trn2.48xlarge"), Status.FAIL).measured == 6


def test_no_core_is_a_failure_without_a_type_too():
    facts = node()
    facts["neuron_ls"]["devices"][5]["cores"] = 0
    assert only(judge(facts, "none"), Status.FAIL).remedy is Remedy.REBOOT


def test_devices_grouped_differently():
    facts = node(neuron_ls=fixture("neuron_ls", "neuron_ls/trn2-48xlarge.json"))
    facts["neuron_ls"]["devices"][3].update(cores=8, lnc=1)
    assert only(judge(facts, "trn2.48xlarge"), Status.FAIL).remedy is Remedy.FIX_CONFIG


def test_no_device_no_pass():
    assert status(judge(node(neuron_ls={"devices": []}))) is Status.UNKNOWN
    assert status(judge(node(), "g5.xlarge")) is Status.SKIP
