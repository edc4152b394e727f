"""gpu_temperature: both styles of limits, memory, implausible and unreadable values."""

import pytest

from tests.harness import status

from . import gpus
from .table import FAIL, PASS, REPLACE, SKIP, UNKNOWN, WARN, judging, row, table


def judge(base, index=2, **values):
    facts = gpus.node(base)
    for name, value in values.items():
        gpus.put(facts, index, name, value)
    return judging("gpu_temperature", facts, "none")


test_gpu_temperature = table(
    row("cool", judge(gpus.H100), PASS, message="GPUs at 31 C"),
    *(row("degrees left", judge(gpus.H100, temperature_tlimit_c=left), wanted)
        for left, wanted in [(20, PASS), (6, PASS), (5, WARN), (1, WARN), (0, FAIL), (-3, FAIL)]),
    row("says how cool it should be", judge(gpus.H100, temperature_c=87, temperature_tlimit_c=-1), FAIL, measured=87,
        expected="below 81", unit="C", message="GPU 2: GPU at 87 C, -1 C below its limit, wanted more than 5 C below"),
    row("no limit printed", judge(gpus.A100, temperature_c=60, temperature_slowdown_c=None), PASS),
    row("no limit printed", judge(gpus.A100, temperature_c=88, temperature_slowdown_c=None), WARN),
    row("no limit printed", judge(gpus.A100, temperature_c=89, temperature_slowdown_c=None), FAIL),
    *(row("memory", judge(gpus.H100, temperature_memory_c=celsius), wanted)
        for celsius, wanted in [(89, PASS), (90, WARN), (95, FAIL)]),
    *(row("no temperature is unknown", judge(gpus.H100, temperature_c=celsius), UNKNOWN, index=2)
        for celsius in ["ERR!", "GPU is lost", None, 0, 255]),
    row("unreadable limit is unknown", judge(gpus.H100, temperature_tlimit_c="[Unknown Error]"), UNKNOWN),
    *(each for facts in [gpus.put_all(gpus.node(count=1), "temperature_c", None)] for each in (
        row("share of a GPU shows none", judging("gpu_temperature", facts, "g6f.large"), SKIP),
        row("share of a GPU shows none", judging("gpu_temperature", facts, "g6.xlarge"), UNKNOWN),
    )),
    *(row("memory without a sensor or a limit is not judged", judge(gpus.H100, **{name: None}), PASS)
        for name in ["temperature_memory_c", "temperature_memory_max_operating_c"]),
    *(row("the range of a plausible temperature", judge(gpus.A100, temperature_c=celsius), wanted)
        for celsius, wanted in [(1, PASS), (130, FAIL), (131, UNKNOWN)]),
)  # fmt: skip


@pytest.mark.parametrize(
    ("celsius", "wanted"),
    [(83, PASS), (84, WARN), (88, WARN), (89, FAIL), (95, FAIL)],
)
def test_slowdown_temperature(celsius, wanted):
    findings = judge(gpus.A100, temperature_c=celsius)
    assert status(findings) is wanted
    if wanted is FAIL:
        assert (findings[0].device["index"], findings[0].remedy) == (2, REPLACE)
