"""gpu_temperature: both styles of limits, memory, implausible and unreadable values."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def judge(base, index=2, **values):
    facts = gpus.node(base)
    for name, value in values.items():
        gpus.put(facts, index, name, value)
    return judge_facts("gpu_temperature", facts, "none")


def test_cool():
    assert only(judge(gpus.H100), Status.PASS).message == "GPUs at 31 C"


@pytest.mark.parametrize(
    ("left", "wanted"),
    [(20, Status.PASS), (6, Status.PASS), (5, Status.WARN), (1, Status.WARN), (0, Status.FAIL), (-3, Status.FAIL)],
)
def test_degrees_left(left, wanted):
    assert status(judge(gpus.H100, temperature_tlimit_c=left)) is wanted


@pytest.mark.parametrize(
    ("celsius", "wanted"),
    [(83, Status.PASS), (84, Status.WARN), (88, Status.WARN), (89, Status.FAIL), (95, Status.FAIL)],
)
def test_slowdown_temperature(celsius, wanted):
    findings = judge(gpus.A100, temperature_c=celsius)
    assert status(findings) is wanted
    if wanted is Status.FAIL:
        assert (findings[0].device["index"], findings[0].remedy) == (2, Remedy.REPLACE)


def test_says_how_cool_it_should_be():
    finding = only(judge(gpus.H100, temperature_c=87, temperature_tlimit_c=-1), Status.FAIL)
    assert (finding.measured, finding.expected, finding.unit) == (87, "below 81", "C")
    assert finding.message == "GPU 2: GPU at 87 C, -1 C below its limit, wanted more than 5 C below"


def test_no_limit_printed():
    assert status(judge(gpus.A100, temperature_c=60, temperature_slowdown_c=None)) is Status.PASS
    assert status(judge(gpus.A100, temperature_c=88, temperature_slowdown_c=None)) is Status.WARN
    assert status(judge(gpus.A100, temperature_c=89, temperature_slowdown_c=None)) is Status.FAIL


@pytest.mark.parametrize(("celsius", "wanted"), [(89, Status.PASS), (90, Status.WARN), (95, Status.FAIL)])
def test_memory(celsius, wanted):
    assert status(judge(gpus.H100, temperature_memory_c=celsius)) is wanted


@pytest.mark.parametrize("celsius", ["ERR!", "GPU is lost", None, 0, 255])
def test_no_temperature_is_unknown(celsius):
    assert only(judge(gpus.H100, temperature_c=celsius), Status.UNKNOWN).device["index"] == 2


def test_unreadable_limit_is_unknown():
    assert status(judge(gpus.H100, temperature_tlimit_c="[Unknown Error]")) is Status.UNKNOWN


def test_share_of_a_gpu_shows_none():
    facts = gpus.put_all(gpus.node(count=1), "temperature_c", None)
    assert status(judge_facts("gpu_temperature", facts, "g6f.large")) is Status.SKIP
    assert status(judge_facts("gpu_temperature", facts, "g6.xlarge")) is Status.UNKNOWN


@pytest.mark.parametrize("name", ["temperature_memory_c", "temperature_memory_max_operating_c"])
def test_memory_without_a_sensor_or_a_limit_is_not_judged(name):
    assert status(judge(gpus.H100, **{name: None})) is Status.PASS


@pytest.mark.parametrize(("celsius", "wanted"), [(1, Status.PASS), (130, Status.FAIL), (131, Status.UNKNOWN)])
def test_the_range_of_a_plausible_temperature(celsius, wanted):
    assert status(judge(gpus.A100, temperature_c=celsius)) is wanted
