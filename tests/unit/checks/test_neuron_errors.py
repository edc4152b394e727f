"""neuron_errors: the driver's counts of what programs met, programs that hang now, and a tool that reports its own error."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from .neurons import TRN1, fixture, node


def judge(facts):
    return judge_facts("neuron_errors", facts, TRN1)


def test_healthy():
    assert "16 devices" in only(judge(node()), Status.PASS).message
    busy = node(neuron_monitor=fixture("neuron_monitor", "neuron_monitor/trn1-busy-stream.jsonl"))
    assert "1 programs" in only(judge(busy), Status.PASS).message


@pytest.mark.parametrize(
    ("counter", "wanted", "remedy"),
    [
        ("hw_nc_ue_error", Status.FAIL, Remedy.REPLACE),
        ("hw_hbm_ue_error", Status.FAIL, Remedy.REPLACE),
        ("hw_dma_abort_error", Status.FAIL, Remedy.REPLACE),
        ("hw_repairable_hbm_ue_error", Status.FAIL, Remedy.REBOOT),
        ("hw_error", Status.FAIL, Remedy.REBOOT),
        ("reset_fail_count", Status.FAIL, Remedy.REBOOT),
        ("hw_collectives_error", Status.WARN, Remedy.INVESTIGATE),
        ("timeout", Status.WARN, Remedy.INVESTIGATE),
    ],
)
def test_counted_by_the_driver(counter, wanted, remedy):
    facts = node()
    facts["neuron_sysfs"]["devices"][3]["counters"][counter] = 2
    finding = only(judge(facts), wanted)
    assert (finding.measured, finding.remedy, finding.device["name"]) == (2, remedy, "neuron3")


@pytest.mark.parametrize(("part", "key"), [("errors", "hardware"), ("executions", "timed_out")])
def test_a_program_that_runs_now(part, key):
    facts = node(neuron_monitor=fixture("neuron_monitor", "neuron_monitor/trn1-busy-stream.jsonl"))
    facts["neuron_monitor"]["runtimes"][0][part][key] = 4
    finding = only(judge(facts), Status.FAIL)
    assert "pretrain" in finding.message
    assert finding.measured == 4


def test_its_own_mistakes_are_the_programs():
    facts = node(neuron_monitor=fixture("neuron_monitor", "neuron_monitor/trn1-busy-stream.jsonl"))
    facts["neuron_monitor"]["runtimes"][0]["errors"].update(generic=3, numerical=9)
    assert status(judge(facts)) is Status.PASS


def test_the_monitors_own_error_is_unknown():
    facts = node(neuron_monitor=fixture("neuron_monitor", "neuron_monitor/no-driver.json"))
    found = [finding for finding in judge(facts) if finding.status is Status.UNKNOWN]
    assert len(found) == 2
    assert "neuron driver is not loaded" in found[0].message


def test_nothing_to_ask():
    facts = node(neuron_sysfs={"driver": "2.24.7.0", "devices": []})
    facts["neuron_monitor"]["runtimes"] = []
    assert status(judge(facts)) is Status.SKIP
