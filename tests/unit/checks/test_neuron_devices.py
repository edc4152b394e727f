"""neuron_devices: every source against the type, and what neuron-ls says when there is no device."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import BROKEN, judge_facts, only, status

from .neurons import TRN1, fixture, node


def judge(facts, instance_type=TRN1, **more):
    return judge_facts("neuron_devices", facts, instance_type, **more)


def test_all_there():
    finding = only(judge(node()), Status.PASS)
    assert finding.measured == 16
    assert "PCI (lspci) 16" in finding.message


def test_one_missing_everywhere_is_the_machine():
    facts = node(lspci={"neuron": 15})
    del facts["neuron_ls"]["devices"][7], facts["neuron_sysfs"]["devices"][7]
    finding = only(judge(facts), Status.FAIL)
    assert (finding.measured, finding.expected, finding.remedy) == (15, 16, Remedy.REPLACE)


def test_one_that_the_bus_has_and_the_driver_lacks_wants_a_reboot():
    facts = node()
    del facts["neuron_ls"]["devices"][7], facts["neuron_sysfs"]["devices"][7]
    finding = only(judge(facts), Status.FAIL)
    assert finding.remedy is Remedy.REBOOT
    assert "driver (sysfs) 15" in finding.message


def test_no_device_without_the_driver():
    facts = node(
        neuron_ls=fixture("neuron_ls", "neuron_ls/no-device.txt"), neuron_sysfs={"driver": None, "devices": []}
    )
    finding = only(judge(facts), Status.FAIL)
    assert (finding.measured, finding.expected, finding.remedy) == (0, 16, Remedy.UPDATE_SOFTWARE)
    assert "no neuron device found" in finding.message
    assert status(judge(facts, "none")) is Status.SKIP, "the driver shows that there is none"
    assert status(judge({"neuron_ls": facts["neuron_ls"]}, "none")) is Status.FAIL, "the tool's own word"


def test_an_empty_list_is_no_pass():
    finding = only(judge(node(neuron_ls={"devices": []})), Status.FAIL)
    assert finding.remedy is Remedy.REBOOT


def test_the_same_device_twice_counts_once():
    facts = node()
    facts["neuron_ls"]["devices"][7]["index"] = 6
    assert only(judge(facts), Status.FAIL).measured == 15


def test_more_than_the_type_has():
    assert only(judge(node(), "trn1.2xlarge"), Status.FAIL).remedy is Remedy.FIX_CONFIG


def test_without_a_type_the_sources_must_agree():
    assert status(judge(node(), "none")) is Status.PASS
    facts = node()
    del facts["neuron_ls"]["devices"][3]
    assert status(judge(facts, "none")) is Status.FAIL


@pytest.mark.parametrize("answer", [BROKEN, None])
def test_without_an_answer_it_is_unknown(answer):
    assert status(judge(node(neuron_ls=answer))) is Status.UNKNOWN


def test_other_accelerators():
    finding = only(judge({}, "p5.48xlarge"), Status.SKIP)
    assert finding.message == "no Neuron device in p5.48xlarge"
    assert status(judge({"neuron_sysfs": {"driver": None, "devices": []}}, "none")) is Status.SKIP
