"""pcie_width: the family's width, the site's, the other GPUs, a type not known."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def judge(instance_type, widths, widest=16, **rest):
    facts = gpus.node(count=len(widths))
    gpus.put_all(facts, "pcie.width_max", widest)
    for index, width in enumerate(widths):
        gpus.put(facts, index, "pcie.width", width)
    return judge_facts("pcie_width", facts, instance_type, **rest)


@pytest.mark.parametrize("instance_type", ["p3dn.24xlarge", "p4d.24xlarge", "p5.48xlarge", "p6-b200.48xlarge"])
def test_training_types_have_all_lanes(instance_type):
    assert status(judge(instance_type, [16] * 8)) is Status.PASS
    finding = only(judge(instance_type, [16] * 7 + [8]), Status.FAIL)
    assert (finding.device["index"], finding.measured, finding.expected, finding.remedy) == (7, 8, 16, Remedy.REBOOT)
    assert status(judge(instance_type, [8] * 8)) is Status.FAIL


@pytest.mark.parametrize("instance_type", ["g5.48xlarge", "g4dn.metal", "g6.48xlarge", "g6e.2xlarge", "gr6.4xlarge"])
def test_eight_of_sixteen_is_normal_here(instance_type):
    assert status(judge(instance_type, [8] * 8)) is Status.PASS
    assert status(judge(instance_type, [8] * 7 + [4])) is Status.FAIL


@pytest.mark.parametrize("instance_type", ["g7e.48xlarge", "g5g.metal", "none"])
def test_where_no_good_node_is_known_it_warns(instance_type):
    assert {finding.status for finding in judge(instance_type, [8] * 8)} == {Status.WARN}
    assert status(judge(instance_type, [16] * 8)) is Status.PASS


def test_narrower_than_its_twins_fails_anywhere():
    finding = only(judge("none", [16, 16, 8, 16]), Status.FAIL)
    assert (finding.device["index"], finding.expected) == (2, 16)


def test_expected_by_the_site():
    assert status(judge("none", [8] * 4, expected={"pcie_width": 8})) is Status.PASS
    assert status(judge("p5.48xlarge", [8] * 8, expected={"pcie_width": 8})) is Status.PASS
    assert status(judge("g5.48xlarge", [8] * 8, expected={"pcie_width": 16})) is Status.FAIL


@pytest.mark.parametrize("value", ["ERR!", None])
def test_unreadable_is_unknown(value):
    findings = judge("p5.48xlarge", [16, 16, value, 16])
    assert only(findings, Status.UNKNOWN).device["index"] == 2


def test_superchip_has_no_pcie_of_its_own():
    assert status(judge("p6e-gb200.36xlarge", [None] * 4)) is Status.SKIP
    assert status(judge("p5.48xlarge", [None] * 8)) is Status.UNKNOWN


def test_not_printed_matters_only_where_the_site_expects_a_value():
    facts = gpus.drop_all(gpus.node(), "pcie")
    assert status(judge_facts("pcie_width", facts)) is Status.SKIP
    assert status(judge_facts("pcie_width", facts, expected={"pcie_width": 8})) is Status.UNKNOWN
