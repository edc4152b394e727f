"""pcie_replays: few, many, rollovers, unreadable."""

import pytest

from flightline_node.model import Status
from tests.harness import judge_facts, only, status

from . import gpus


@pytest.mark.parametrize(
    ("count", "wanted"), [(0, Status.PASS), (80, Status.PASS), (81, Status.WARN), (100000, Status.WARN)]
)
def test_count(count, wanted):
    findings = judge_facts("pcie_replays", gpus.put(gpus.node(), 6, "pcie.replays", count))
    assert status(findings) is wanted
    if wanted is Status.WARN:
        assert only(findings, wanted).device["index"] == 6


def test_rollovers_warn():
    assert status(judge_facts("pcie_replays", gpus.put(gpus.node(), 6, "pcie.replay_rollovers", 1))) is Status.WARN


@pytest.mark.parametrize("path", ["pcie.replays", "pcie.replay_rollovers"])
def test_unreadable_is_unknown(path):
    facts = gpus.put(gpus.node(), 6, path, "[Unknown Error]")
    assert only(judge_facts("pcie_replays", facts), Status.UNKNOWN).device["index"] == 6
