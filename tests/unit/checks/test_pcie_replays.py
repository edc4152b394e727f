"""pcie_replays: few, many, rollovers, unreadable."""

import pytest

from flightline_node.model import Status
from tests.harness import judge_facts, only, status

from . import gpus


@pytest.mark.parametrize(
    ("count", "wanted"), [(0, Status.PASS), (320, Status.PASS), (321, Status.WARN), (100000, Status.WARN)]
)
def test_count(count, wanted):
    findings = judge_facts("pcie_replays", gpus.put(gpus.node(), 6, "pcie.replays", count))
    assert status(findings) is wanted
    if wanted is Status.WARN:
        assert only(findings, wanted).device["index"] == 6


@pytest.mark.parametrize(("gen", "most"), [(None, 80), (3, 80), (4, 160), (6, 640)])
def test_the_limit_follows_the_generation(gen, most):
    facts = gpus.put_all(gpus.node(), "pcie.gen_max", gen)
    assert status(judge_facts("pcie_replays", gpus.put(facts, 6, "pcie.replays", most))) is Status.PASS
    assert status(judge_facts("pcie_replays", gpus.put(facts, 6, "pcie.replays", most + 1))) is Status.WARN


def test_a_count_that_all_gpus_share_is_no_fault_unless_it_is_very_high():
    facts = gpus.put_all(gpus.node(), "pcie.replays", 500)
    assert status(judge_facts("pcie_replays", facts)) is Status.PASS
    assert only(judge_facts("pcie_replays", gpus.put(facts, 6, "pcie.replays", 5001)), Status.WARN).expected == 5000
    findings = judge_facts("pcie_replays", gpus.put_all(gpus.node(), "pcie.replays", 250000))
    assert [finding.status for finding in findings] == [Status.WARN] * 8


def test_rollovers_warn():
    assert status(judge_facts("pcie_replays", gpus.put(gpus.node(), 6, "pcie.replay_rollovers", 1))) is Status.WARN


@pytest.mark.parametrize("path", ["pcie.replays", "pcie.replay_rollovers"])
def test_unreadable_is_unknown(path):
    facts = gpus.put(gpus.node(), 6, path, "[Unknown Error]")
    assert only(judge_facts("pcie_replays", facts), Status.UNKNOWN).device["index"] == 6
