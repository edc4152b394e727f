"""memory_repair: nothing pending, pending, unrepairable, not printed."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def test_nothing_to_repair():
    assert "channel_repair_pending" in only(judge_facts("memory_repair", gpus.node()), Status.PASS).message


@pytest.mark.parametrize(
    ("flag", "remedy"),
    [
        ("channel_repair_pending", Remedy.RESET_GPU),
        ("tpc_repair_pending", Remedy.RESET_GPU),
        ("unrepairable_memory", Remedy.REPLACE),
    ],
)
def test_faults(flag, remedy):
    facts = gpus.put_all(gpus.node(), "unrepairable_memory", False)
    finding = only(judge_facts("memory_repair", gpus.put(facts, 3, flag, True)), Status.FAIL)
    assert (finding.device["index"], finding.remedy) == (3, remedy)


def test_bank_remapping():
    facts = gpus.put_all(gpus.node(), "bank_remap", {"pending": False})
    assert "bank_remap.pending" in only(judge_facts("memory_repair", facts), Status.PASS).message
    finding = only(judge_facts("memory_repair", gpus.put(facts, 3, "bank_remap", {"pending": True})), Status.FAIL)
    assert (finding.device["index"], finding.remedy) == (3, Remedy.RESET_GPU)
    gpus.put(facts, 3, "bank_remap", {"pending": "GPU is lost"})
    assert only(judge_facts("memory_repair", facts), Status.UNKNOWN).device["index"] == 3
    assert status(judge_facts("memory_repair", gpus.put_all(facts, "bank_remap", None))) is Status.PASS


def test_a_broken_gpu_is_not_held_to_flags_that_no_gpu_has():
    facts = gpus.put(gpus.node(), 3, "name", "System is not in ready state")
    assert status(judge_facts("memory_repair", facts)) is Status.PASS


def test_unreadable_is_unknown():
    facts = gpus.put(gpus.node(), 3, "channel_repair_pending", "ERR!")
    assert only(judge_facts("memory_repair", facts), Status.UNKNOWN).device["index"] == 3


def test_not_printed():
    facts = gpus.drop_all(gpus.drop_all(gpus.node(), "channel_repair_pending"), "tpc_repair_pending")
    assert "580" in only(judge_facts("memory_repair", facts), Status.SKIP).message


def test_no_gpu_listed_is_unknown():
    assert status(judge_facts("memory_repair", {"nvidia_smi": {"gpus": []}})) is Status.UNKNOWN
