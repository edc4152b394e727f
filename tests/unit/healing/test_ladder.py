"""The ladder follows the finding's remedy, climbs when a step did not help, and ends at a person."""

import pytest

from flightline.healing.plan.ladder import AUTOMATIC, choose
from flightline_node.model import Remedy

R = Remedy
NO_REPLACE = AUTOMATIC - {R.REPLACE}


@pytest.mark.parametrize(
    ("asked", "tried", "able", "step"),
    [
        (["RESTART_APP"], [], AUTOMATIC, R.RESTART_APP),
        (["RESET_GPU"], [], AUTOMATIC, R.RESET_GPU),
        (["REBOOT"], [], AUTOMATIC, R.REBOOT),
        (["REPLACE"], [], AUTOMATIC, R.REPLACE),
        (["RESET_GPU", "REBOOT"], [], AUTOMATIC, R.REBOOT),
        (["RESET_GPU"], [R.RESET_GPU], AUTOMATIC, R.REBOOT),
        (["RESET_GPU"], [R.RESET_GPU, R.REBOOT], AUTOMATIC, R.REPLACE),
        (["RESTART_APP"], [R.REBOOT], AUTOMATIC, R.REPLACE),
        (["REBOOT"], [R.RESET_GPU], AUTOMATIC, R.REBOOT),
        (["RESET_GPU"], [], {R.REBOOT}, R.REBOOT),
        (["REBOOT", "FIX_CONFIG"], [], AUTOMATIC, R.REBOOT),
        (["RESET_GPU"], [R.RESET_GPU, R.REBOOT, R.REPLACE], AUTOMATIC, None),
        (["REPLACE"], [], NO_REPLACE, None),
        (["CONTACT_SUPPORT"], [], AUTOMATIC, None),
        (["CONTACT_SUPPORT", "RESET_GPU"], [], AUTOMATIC, None),
        (["FIX_CONFIG"], [], AUTOMATIC, None),
        (["UPDATE_SOFTWARE", "INVESTIGATE"], [], AUTOMATIC, None),
        (["NONE"], [], AUTOMATIC, None),
        (["TURN_IT_OFF_AND_ON"], [], AUTOMATIC, None),
        ([], [], AUTOMATIC, None),
    ],
)
def test_next_step(asked, tried, able, step):
    choice = choose(asked, tried, able)
    assert choice.step == step
    assert choice.why


def test_an_unknown_remedy_is_named_to_the_person_who_gets_the_node():
    assert "TURN_IT_OFF_AND_ON" in choose(["TURN_IT_OFF_AND_ON"], []).why
