"""gpu_memory: within the tolerance, too small, too large, unreadable."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


@pytest.mark.parametrize(
    ("mib", "instance_type"),
    [
        (81559, "p5.48xlarge"),
        (40536, "p4d.24xlarge"),
        (81251, "p4de.24xlarge"),
        (15360, "g4dn.metal"),
        (15360, "g5g.metal"),
        (15109, "g4dn.metal"),  # drivers before 510 leave out what they reserve
        (15109, "g5g.metal"),
        (23028, "g5.48xlarge"),
        (23034, "g6.48xlarge"),
        (3072, "g6f.large"),
        (32510, "p3dn.24xlarge"),
        (97887, "g7e.48xlarge"),
    ],
)
def test_sizes_nvidia_smi_prints(mib, instance_type):
    facts = gpus.put_all(gpus.node(), "memory_total_mib", mib)
    assert status(judge_facts("gpu_memory", facts, instance_type)) is Status.PASS


@pytest.mark.parametrize(("mib", "remedy"), [(72000, Remedy.REPLACE), (143771, Remedy.FIX_CONFIG)])
def test_wrong_size_fails(mib, remedy):
    facts = gpus.put(gpus.node(), 7, "memory_total_mib", mib)
    finding = only(judge_facts("gpu_memory", facts), Status.FAIL)
    assert (finding.measured, finding.expected, finding.remedy) == (mib, 81559, remedy)


def test_tolerance_is_the_site_s():
    facts = gpus.put_all(gpus.node(), "memory_total_mib", 80000)
    assert status(judge_facts("gpu_memory", facts)) is Status.PASS
    assert status(judge_facts("gpu_memory", facts, thresholds={"gpu_memory.tolerance_percent": 1})) is Status.FAIL


@pytest.mark.parametrize("value", [None, "GPU is lost", "[Unknown Error]"])
def test_unreadable_is_unknown(value):
    facts = gpus.put(gpus.node(), 1, "memory_total_mib", value)
    assert only(judge_facts("gpu_memory", facts), Status.UNKNOWN).device["index"] == 1


def test_no_expectation_no_answer():
    assert status(judge_facts("gpu_memory", gpus.node(), "none")) is Status.SKIP


@pytest.mark.parametrize(("mib", "wanted"), [(90_000, Status.PASS), (89_999, Status.FAIL)])
def test_the_tolerance_ends_where_it_says(mib, wanted):
    facts = gpus.put_all(gpus.node(), "memory_total_mib", mib)
    thresholds = {"gpu_memory.tolerance_percent": 10}
    findings = judge_facts("gpu_memory", facts, expected={"gpu_memory_mib": 100_000}, thresholds=thresholds)
    assert status(findings) is wanted


@pytest.mark.parametrize(
    ("mib", "wanted", "remedy"),
    [
        (93_000, Status.PASS, Remedy.NONE),
        (92_999, Status.FAIL, Remedy.REPLACE),
        (115_000, Status.PASS, Remedy.NONE),
        (115_001, Status.FAIL, Remedy.FIX_CONFIG),
    ],
)
def test_seven_percent_less_and_fifteen_more_are_accepted(mib, wanted, remedy):
    facts = gpus.put_all(gpus.node(), "memory_total_mib", mib)
    findings = judge_facts("gpu_memory", facts, expected={"gpu_memory_mib": 100_000})
    assert {(finding.status, finding.remedy) for finding in findings} == {(wanted, remedy)}
