"""A GPU far from its fleet under load is named on its node, with its distance; it warns and does not block."""

import pytest

from flightline_node.model import Status, Verdict
from tests.unit.fleet.test_fleet import judge, row
from tests.unit.made import record


def loaded(host, measure="gpu_load_tflops", unit="TFLOPS", **odd):
    values = {f"GPU {at}": odd.get(f"gpu{at}", 700.0 + at % 3) for at in range(8)}
    return record(host, measures={measure: {"unit": unit, "values": values}})


def fleet(measure="gpu_load_tflops", unit="TFLOPS", **odd):
    return judge(*(loaded(f"n{at}", measure, unit, **(odd if at == 2 else {})) for at in range(4)))


def test_a_slow_gpu_is_named_with_its_distance_and_its_node_stays_go():
    report = fleet(gpu5=640.0)
    slow = row(report, "n2")
    (one,) = [finding for finding in slow.findings if finding["check"] == "straggler"]
    assert one["device"] == {"name": "GPU 5"} and one["measured"] == 640.0 and one["expected"] == 701.0
    assert "robust standard deviations below the median of 32 values" in one["message"]
    assert slow.verdict is Verdict.GO and slow.status is Status.WARN and report.verdict is Verdict.GO


@pytest.mark.parametrize(
    ("measure", "value", "named"),
    [
        ("gpu_load_temperature_c", 900.0, True),
        ("gpu_load_temperature_c", 500.0, False),
        ("gpu_load_sm_mhz", 500.0, True),
        ("gpu_load_sm_mhz", 900.0, False),
        ("nccl_all_reduce_busbw", 500.0, True),
        ("load1", 9000.0, False),
    ],
)
def test_only_the_direction_that_costs_a_job_time_is_named(measure, value, named):
    report = fleet(measure, "", gpu3=value)
    assert ("straggler" in row(report, "n2").cells) is named


def test_a_healthy_fleet_and_one_too_small_to_compare_have_none():
    assert not any("straggler" in one.cells for one in fleet().rows)
    assert not any("straggler" in one.cells for one in judge(record("a"), record("b")).rows)
