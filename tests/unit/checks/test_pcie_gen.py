"""pcie_gen: reachable generation, idle downshift, load, the site's expectation."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def test_idle_downshift_is_no_fault():
    assert "5" in only(judge_facts("pcie_gen", gpus.node()), Status.PASS).message


def test_lower_than_its_twins_fails():
    finding = only(judge_facts("pcie_gen", gpus.put(gpus.node(), 4, "pcie.gen_max", 4)), Status.FAIL)
    assert (finding.device["index"], finding.measured, finding.expected, finding.remedy) == (4, 4, 5, Remedy.REBOOT)


def test_expected_generation():
    assert status(judge_facts("pcie_gen", gpus.node(), expected={"pcie_gen": 5})) is Status.PASS
    assert status(judge_facts("pcie_gen", gpus.node(gpus.T4), "none", expected={"pcie_gen": 4})) is Status.FAIL


def test_low_under_load_warns():
    facts = gpus.put(gpus.node(), 4, "power.draw_w", 690.0)
    finding = only(judge_facts("pcie_gen", facts), Status.WARN)
    assert (finding.device["index"], finding.measured, finding.expected) == (4, 1, 5)
    assert status(judge_facts("pcie_gen", gpus.put(facts, 4, "pcie.gen", 5))) is Status.PASS


@pytest.mark.parametrize("value", ["ERR!", None])
def test_unreadable_is_unknown(value):
    facts = gpus.put(gpus.node(), 4, "pcie.gen_max", value)
    assert only(judge_facts("pcie_gen", facts), Status.UNKNOWN).device["index"] == 4


def test_not_printed_matters_only_where_the_site_expects_a_value():
    facts = gpus.drop_all(gpus.node(), "pcie")
    assert status(judge_facts("pcie_gen", facts)) is Status.SKIP
    assert status(judge_facts("pcie_gen", facts, expected={"pcie_gen": 8})) is Status.UNKNOWN
