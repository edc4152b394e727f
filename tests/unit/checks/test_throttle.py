"""throttle: hardware reasons fail, software thermal warns, the rest is normal."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def judge(reasons):
    return judge_facts("throttle", gpus.put(gpus.node(), 1, "throttle_active", reasons))


@pytest.mark.parametrize(
    ("reasons", "wanted"),
    [
        ([], Status.PASS),
        (["gpu_idle"], Status.PASS),
        (["applications_clocks_setting", "sw_power_cap"], Status.PASS),
        (["sync_boost", "display_clocks_setting"], Status.PASS),
        (["sw_thermal_slowdown"], Status.WARN),
        (["hw_slowdown"], Status.FAIL),
        (["hw_slowdown", "hw_power_brake_slowdown"], Status.FAIL),
        (["hw_thermal_slowdown", "sw_thermal_slowdown"], Status.FAIL),
        ("ERR!", Status.UNKNOWN),
        (None, Status.UNKNOWN),
    ],
)
def test_reasons(reasons, wanted):
    findings = judge(reasons)
    assert status(findings) is wanted
    if wanted is not Status.PASS:
        assert only(findings, wanted).device["index"] == 1


def test_failed_gpu_lists_its_reasons():
    finding = only(judge(["hw_slowdown", "hw_power_brake_slowdown"]), Status.FAIL)
    assert "hw_power_brake_slowdown" in finding.message
    assert finding.remedy is Remedy.REPLACE


def test_na_everywhere_is_unknown():
    assert status(judge_facts("throttle", gpus.put_all(gpus.node(), "throttle_active", None))) is Status.UNKNOWN


def test_what_is_active_without_harm_is_shown():
    assert only(judge([]), Status.PASS).message == "no hardware slowdown (active: gpu_idle)"
    none = gpus.put_all(gpus.node(), "throttle_active", [])
    assert only(judge_facts("throttle", none), Status.PASS).message == "no hardware slowdown (active: nothing)"
