"""neuron_ecc: each counter with its remedy, a count that cannot be read, and a 0 that is a lie."""

import pytest

from tests.harness import BROKEN, only, status

from .neurons import TRN1, fixture, node
from .table import FAIL, PASS, REBOOT, REPLACE, UNKNOWN, judging, row, table


def judge(facts, instance_type=TRN1, **more):
    return judging("neuron_ecc", facts, instance_type, **more)


test_neuron_ecc = table(
    row("one source alone will do", [judge(node(neuron_sysfs=None)), judge(node(neuron_monitor=BROKEN))], PASS),
    row("one source alone will do", judge(node(neuron_sysfs=BROKEN, neuron_monitor=BROKEN)), UNKNOWN),
    row("no device at all", judge(node(neuron_ls={"devices": []}, neuron_sysfs={"driver": "2.24.7.0", "devices": []},
        neuron_monitor=None)), UNKNOWN),
)  # fmt: skip


def test_healthy():
    measures = {}
    assert "16 devices" in only(judge(node(), measures=measures), PASS).message
    assert len(measures["neuron_mem_ecc_uncorrected"]["values"]) == 16


@pytest.mark.parametrize("source", ["neuron_sysfs", "neuron_monitor"])
@pytest.mark.parametrize(
    ("counter", "remedy"),
    [
        ("mem_ecc_uncorrected", REPLACE),
        ("sram_ecc_uncorrected", REPLACE),
        ("mem_ecc_repairable_uncorrected", REBOOT),
    ],
)
def test_one_error_in_either_source(source, counter, remedy):
    facts = node()
    device = facts[source]["devices"][9]
    device.get("ecc", device)[counter] = 2
    finding = only(judge(facts), FAIL)
    assert (finding.measured, finding.expected, finding.remedy) == (2, 0, remedy)
    assert (finding.device["name"], finding.device["pci"]) == ("neuron9", "19:1e.0")
    assert status(judge(facts, "none")) is FAIL


def test_a_device_without_a_count_is_unknown():
    facts = node(neuron_monitor=None)
    del facts["neuron_sysfs"]["devices"][4]
    assert {finding.device["name"] for finding in judge(facts)} == {"neuron4"}
    assert status(judge(facts)) is UNKNOWN
    facts["neuron_sysfs"]["devices"][5]["ecc"] = {}
    assert status(judge(facts)) is UNKNOWN


def test_a_read_that_failed_is_no_zero():
    facts = node(
        neuron_monitor=None, neuron_ls=None, neuron_sysfs=fixture("neuron_sysfs", "neuron_sysfs/not-root.json")
    )
    assert "Permission denied" in next(f for f in judge(facts) if f.status is UNKNOWN).message


def test_the_driver_shows_0_when_it_could_not_read():
    facts = node(neuron_log=fixture("neuron_log", "neuron_log/kernel-errors.log"))
    assert "shows 0" in only(judge(facts), UNKNOWN).message
    for event in facts["neuron_log"]["events"]:
        event["before_boot"] = True
    assert status(judge(facts)) is PASS


def test_another_message_of_the_driver_says_nothing_of_the_counts():
    log = fixture("neuron_log", "neuron_log/kernel-errors.log")
    log["events"] = [event for event in log["events"] if event["rule"] != "ecc_unread"]
    assert log["events"] and status(judge(node(neuron_log=log))) is PASS
