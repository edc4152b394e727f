"""recovery_action: actions of new drivers, reset flags of old ones, neither."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def judge(action):
    return judge_facts("recovery_action", gpus.put(gpus.node(), 0, "recovery_action", action))


def test_nothing_to_do():
    assert only(judge("None"), Status.PASS)


@pytest.mark.parametrize(
    ("action", "remedy"),
    [
        ("GPU Reset", Remedy.RESET_GPU),
        ("Reset", Remedy.RESET_GPU),
        ("Node Reboot", Remedy.REBOOT),
        ("Reboot", Remedy.REBOOT),
        ("Drain P2P", Remedy.RESET_GPU),
        ("Drain and Reset", Remedy.RESET_GPU),
        ("Recover IMEX Domain", Remedy.FIX_CONFIG),
        ("Bus Reset", Remedy.REBOOT),
        ("System Reboot", Remedy.REBOOT),
        ("GPU_RESET", Remedy.RESET_GPU),
        ("DRAIN_AND_RESET", Remedy.RESET_GPU),
    ],
)
def test_actions(action, remedy):
    finding = only(judge(action), Status.FAIL)
    assert (finding.device["index"], finding.remedy, finding.measured) == (0, remedy, action)


@pytest.mark.parametrize(
    "action", ["Do A Barrel Roll", "ERR!", "[Unknown Error]", "System is not in ready state", None]
)
def test_anything_else_is_unknown(action):
    assert only(judge(action), Status.UNKNOWN).device["index"] == 0


@pytest.mark.parametrize("name", ["reset_required", "drain_and_reset_recommended"])
def test_flags(name):
    facts = gpus.drop_all(gpus.node(), "recovery_action")
    gpus.put_all(gpus.put_all(facts, "reset_required", False), "drain_and_reset_recommended", False)
    assert status(judge_facts("recovery_action", facts)) is Status.PASS
    assert only(judge_facts("recovery_action", gpus.put(facts, 7, name, True)), Status.FAIL).remedy is Remedy.RESET_GPU
    assert status(judge_facts("recovery_action", gpus.put(facts, 7, name, "ERR!"))) is Status.UNKNOWN


def test_flag_counts_beside_an_action_of_none():
    assert status(judge_facts("recovery_action", gpus.put(gpus.node(), 7, "reset_required", True))) is Status.FAIL


def test_neither_printed():
    facts = gpus.drop_all(gpus.drop_all(gpus.node(), "recovery_action"), "reset_required")
    assert "535" in only(judge_facts("recovery_action", facts), Status.SKIP).message
