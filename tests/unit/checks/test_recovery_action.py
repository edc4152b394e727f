"""recovery_action: actions of new drivers, reset flags of old ones, neither."""

import pytest

from tests.harness import only, status

from . import gpus
from .table import FAIL, FIX_CONFIG, PASS, REBOOT, RESET_GPU, SKIP, UNKNOWN, judging, row, table


def judge(action):
    return judging("recovery_action", gpus.one(0, "recovery_action", action))


test_recovery_action = table(
    row("nothing to do", judge("None"), PASS, count=1),
    *(row("actions", judge(action), FAIL, index=0, remedy=remedy, measured=action)
        for action, remedy in [
            ("GPU Reset", RESET_GPU), ("Reset", RESET_GPU), ("Node Reboot", REBOOT), ("Reboot", REBOOT),
            ("Drain P2P", RESET_GPU), ("Drain and Reset", RESET_GPU), ("Recover IMEX Domain", FIX_CONFIG),
            ("Bus Reset", REBOOT), ("System Reboot", REBOOT), ("GPU_RESET", RESET_GPU),
            ("DRAIN_AND_RESET", RESET_GPU),
        ]),
    *(row("anything else is unknown", judge(action), UNKNOWN, index=0)
        for action in ["Do A Barrel Roll", "ERR!", "[Unknown Error]", "System is not in ready state", None]),
    row("flag counts beside an action of none", judging("recovery_action", gpus.one(7, "reset_required", True)), FAIL),
    row("neither printed", judging("recovery_action", gpus.drop_all(gpus.silent("recovery_action"), "reset_required")),
        SKIP, says="535"),
)  # fmt: skip


@pytest.mark.parametrize("name", ["reset_required", "drain_and_reset_recommended"])
def test_flags(name):
    facts = gpus.silent("recovery_action")
    gpus.put_all(gpus.put_all(facts, "reset_required", False), "drain_and_reset_recommended", False)
    assert status(judging("recovery_action", facts)) is PASS
    assert only(judging("recovery_action", gpus.put(facts, 7, name, True)), FAIL).remedy is RESET_GPU
    assert status(judging("recovery_action", gpus.put(facts, 7, name, "ERR!"))) is UNKNOWN
