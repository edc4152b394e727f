"""gpu_load: a slow GPU against its twins and the data sheet, heat by clock reasons, and what was not measured."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status


def gpu(index, tflops=660.0, **more):
    base = {"index": index, "name": "NVIDIA H100 80GB HBM3", "sm_count": 132, "tflops": tflops, "samples": 20}
    return {**base, "throttled": {}, "temperature_c_max": 60.0, **more}


def judge(gpus, instance_type="p5.48xlarge", **more):
    return judge_facts("gpu_load", {"gpu_load": {"seconds": 20.0, "gpus": gpus}}, instance_type, **more)


def test_equal_gpus_pass():
    (finding,) = judge([gpu(index, 660 - index) for index in range(8)])
    assert finding.status is Status.PASS
    assert "653 to 660 TFLOPS on 8 GPUs" in finding.message


@pytest.mark.parametrize(
    ("tflops", "wanted"), [(615, None), (600, Status.WARN), (530, Status.WARN), (520, Status.FAIL), (30, Status.FAIL)]
)
def test_one_slower_than_its_twins(tflops, wanted):
    findings = judge([*(gpu(index) for index in range(7)), gpu(7, tflops)])
    if wanted is None:
        assert status(findings) is Status.PASS
        return
    slow = only(findings, wanted)
    assert (slow.device["index"], slow.measured, slow.unit) == (7, tflops, "TFLOPS")
    assert slow.remedy is (Remedy.REPLACE if wanted is Status.FAIL else Remedy.INVESTIGATE)


def test_twins_are_of_one_product_and_size():
    others = [gpu(index, 300.0, sm_count=114) for index in range(6)]
    assert status(judge([gpu(6), gpu(7), *others], thresholds={"gpu_load.min_peak_percent": 0})) is Status.PASS


def test_all_slow_is_seen_by_the_data_sheet():
    findings = judge([gpu(index, 440.0) for index in range(8)])
    assert {(finding.status, finding.remedy) for finding in findings} == {(Status.FAIL, Remedy.INVESTIGATE)}
    assert len(findings) == 8
    assert status(judge([gpu(index, 446.0) for index in range(8)])) is Status.PASS
    assert status(judge([gpu(0, 18.0)], "g4dn.xlarge")) is Status.PASS


@pytest.mark.parametrize("reason", ["hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"])
def test_slowed_down_by_the_hardware(reason):
    hot = gpu(3, throttled={reason: 1}, temperature_c_max=88.0)
    finding = only(judge([*(gpu(index) for index in range(7)), hot]), Status.FAIL)
    assert finding.remedy is Remedy.REPLACE
    assert reason in finding.message
    assert "88" in finding.message


@pytest.mark.parametrize(("samples", "wanted"), [(10, Status.PASS), (11, Status.WARN)])
def test_slowed_down_by_the_driver(samples, wanted):
    warm = gpu(3, throttled={"sw_thermal_slowdown": samples}, samples=100)
    assert status(judge([*(gpu(index) for index in range(7)), warm])) is wanted


def test_without_samples_it_says_so():
    unseen = {"samples": None, "throttled": {}}
    (finding,) = judge([gpu(index, **unseen) for index in range(8)])
    assert "not sampled" in finding.message


def test_a_gpu_without_a_figure_is_unknown():
    hung = {"index": 7, "error": "did not answer within 30 s after the end: the GPU hangs"}
    finding = only(judge([*(gpu(index) for index in range(7)), hung]), Status.UNKNOWN)
    assert "hangs" in finding.message


def test_a_gpu_that_cuda_does_not_see_is_unknown():
    finding = only(judge([gpu(index) for index in range(7)]), Status.UNKNOWN)
    assert (finding.measured, finding.expected) == (7, 8)


def test_not_run():
    finding = only(judge_facts("gpu_load", {"gpu_load": {"not_run": "libcuda.so.1: not found"}}), Status.UNKNOWN)
    assert "libcuda.so.1: not found" in finding.message
    assert finding.remedy is Remedy.FIX_CONFIG
    assert status(judge_facts("gpu_load", {}, "trn1.32xlarge")) is Status.SKIP


@pytest.mark.parametrize(
    ("tflops", "wanted"), [(92.0, Status.PASS), (91.9, Status.WARN), (80.0, Status.WARN), (79.9, Status.FAIL)]
)
def test_eight_percent_behind_its_twins_warns_and_twenty_fails(tflops, wanted):
    # A type without a data sheet's floor: only the twins' median of 100 TFLOPS counts.
    gpus = [*(gpu(index, 100.0) for index in range(7)), gpu(7, tflops)]
    assert status(judge(gpus, "g5.48xlarge")) is wanted


@pytest.mark.parametrize(("tflops", "wanted"), [(445.05, Status.PASS), (445.04, Status.FAIL)])
def test_the_share_of_the_data_sheet_is_the_least_that_passes(tflops, wanted):
    assert status(judge([gpu(index, tflops) for index in range(8)])) is wanted  # 45 % of 989


def test_a_smaller_part_is_not_measured_against_larger_ones():
    gpus = [*(gpu(index) for index in range(6)), *(gpu(index, 300.0, sm_count=114) for index in (6, 7))]
    assert status(judge(gpus, thresholds={"gpu_load.min_peak_percent": 0})) is Status.PASS


def test_how_long_the_load_was_is_said():
    assert "for 20 s" in only(judge([gpu(index) for index in range(8)]), Status.PASS).message
