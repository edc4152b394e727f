"""gpu_clocks: maximum clocks within the node, clock under load, idle."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def loaded(facts, index):
    gpus.put(facts, index, "power.draw_w", 600.0)
    return gpus.put(facts, index, "throttle_active", [])


def test_idle_clocks_are_no_fault():
    assert "1980" in only(judge_facts("gpu_clocks", gpus.node()), Status.PASS).message
    assert status(judge_facts("gpu_clocks", gpus.put_all(gpus.node(), "throttle_active", []))) is Status.PASS


def test_lower_maximum_warns():
    finding = only(judge_facts("gpu_clocks", gpus.put(gpus.node(), 3, "clocks_max.sm_mhz", 1755)), Status.WARN)
    assert (finding.device["index"], finding.measured, finding.expected) == (3, 1755, 1980)


def test_stuck_under_load_warns():
    finding = only(judge_facts("gpu_clocks", loaded(gpus.node(), 3)), Status.WARN)
    assert (finding.device["index"], finding.measured, finding.remedy) == (3, 345, Remedy.RESET_GPU)


def test_under_load_with_a_reason_or_at_speed():
    capped = gpus.put(loaded(gpus.node(), 3), 3, "throttle_active", ["sw_power_cap"])
    assert status(judge_facts("gpu_clocks", capped)) is Status.PASS
    fast = gpus.put(loaded(gpus.node(), 3), 3, "clocks.sm_mhz", 1700)
    assert status(judge_facts("gpu_clocks", fast)) is Status.PASS


@pytest.mark.parametrize("value", ["ERR!", None])
def test_unreadable_is_unknown(value):
    facts = gpus.put(gpus.node(), 3, "clocks_max.sm_mhz", value)
    assert only(judge_facts("gpu_clocks", facts), Status.UNKNOWN).device["index"] == 3


@pytest.mark.parametrize(("mhz", "wanted"), [(990, Status.PASS), (989, Status.WARN)])
def test_half_of_the_maximum_is_enough_under_load(mhz, wanted):
    facts = gpus.put(loaded(gpus.node(), 3), 3, "clocks.sm_mhz", mhz)  # of 1980 MHz
    assert status(judge_facts("gpu_clocks", facts)) is wanted
