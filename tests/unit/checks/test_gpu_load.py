"""gpu_load: a slow GPU against its twins and the data sheet, heat by clock reasons, and what was not measured."""

import pytest

from tests.harness import only, status

from .table import FAIL, FIX_CONFIG, INVESTIGATE, PASS, REPLACE, SKIP, UNKNOWN, WARN, judging, row, table


def gpu(index, tflops=660.0, **more):
    base = {"index": index, "name": "NVIDIA H100 80GB HBM3", "sm_count": 132, "tflops": tflops, "samples": 20}
    return {**base, "throttled": {}, "temperature_c_max": 60.0, **more}


def judge(gpus, instance_type="p5.48xlarge", **more):
    return judging("gpu_load", {"gpu_load": {"seconds": 20.0, "gpus": gpus}}, instance_type, **more)


test_gpu_load = table(
    row("equal GPUs pass", judge([gpu(index, 660 - index) for index in range(8)]), PASS, alone=True,
        says="653 to 660 TFLOPS on 8 GPUs"),
    row("twins are of one product and size",
        judge([gpu(6), gpu(7), *[gpu(index, 300.0, sm_count=114) for index in range(6)]],
        thresholds={"gpu_load.min_peak_percent": 0}), PASS),
    *(row("slowed down by the hardware",
        judge([*(gpu(index) for index in range(7)), gpu(3, throttled={reason: 1}, temperature_c_max=88.0)]), FAIL,
        remedy=REPLACE, says=(reason, "88"))
        for reason in ["hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"]),
    *(row("slowed down by the driver",
        judge([*(gpu(index) for index in range(7)), gpu(3, throttled={"sw_thermal_slowdown": samples}, samples=100)]),
        wanted)
        for samples, wanted in [(10, PASS), (11, WARN)]),
    row("a GPU without a figure is unknown",
        judge([*(gpu(index) for index in range(7)),
        {"index": 7, "error": "did not answer within 30 s after the end: the GPU hangs"}]), UNKNOWN, says="hangs"),
    row("a GPU that CUDA does not see is unknown", judge([gpu(index) for index in range(7)]), UNKNOWN, measured=7,
        expected=8),
    row("not run", judging("gpu_load", {"gpu_load": {"not_run": "libcuda.so.1: not found"}}), UNKNOWN,
        says="libcuda.so.1: not found", remedy=FIX_CONFIG),
    row("not run", judging("gpu_load", {}, "trn1.32xlarge"), SKIP),
    # A type without a data sheet's floor: only the twins' median of 100 TFLOPS counts.
    *(row("eight percent behind its twins warns and twenty fails",
        judge([*(gpu(index, 100.0) for index in range(7)), gpu(7, tflops)], "g5.48xlarge"), wanted)
        for tflops, wanted in [(92.0, PASS), (91.9, WARN), (80.0, WARN), (79.9, FAIL)]),
    # 45 % of 989
    *(row("the share of the data sheet is the least that passes", judge([gpu(index, tflops) for index in range(8)]),
        wanted)
        for tflops, wanted in [(445.05, PASS), (445.04, FAIL)]),
    row("a smaller part is not measured against larger ones",
        judge([*(gpu(index) for index in range(6)), *(gpu(index, 300.0, sm_count=114) for index in (6, 7))],
        thresholds={"gpu_load.min_peak_percent": 0}), PASS),
    row("how long the load was is said", judge([gpu(index) for index in range(8)]), PASS, says="for 20 s"),
)  # fmt: skip


@pytest.mark.parametrize(("tflops", "wanted"), [(615, None), (600, WARN), (530, WARN), (520, FAIL), (30, FAIL)])
def test_one_slower_than_its_twins(tflops, wanted):
    findings = judge([*(gpu(index) for index in range(7)), gpu(7, tflops)])
    if wanted is None:
        assert status(findings) is PASS
        return
    slow = only(findings, wanted)
    assert (slow.device["index"], slow.measured, slow.unit) == (7, tflops, "TFLOPS")
    assert slow.remedy is (REPLACE if wanted is FAIL else INVESTIGATE)


def test_all_slow_is_seen_by_the_data_sheet():
    findings = judge([gpu(index, 440.0) for index in range(8)])
    assert {(finding.status, finding.remedy) for finding in findings} == {(FAIL, INVESTIGATE)}
    assert len(findings) == 8
    assert status(judge([gpu(index, 446.0) for index in range(8)])) is PASS
    assert status(judge([gpu(0, 18.0)], "g4dn.xlarge")) is PASS


def test_without_samples_it_says_so():
    unseen = {"samples": None, "throttled": {}}
    (finding,) = judge([gpu(index, **unseen) for index in range(8)])
    assert "not sampled" in finding.message
