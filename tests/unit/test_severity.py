"""Every check answers whether a paid node is taken out of service for it; a check without an answer is not catalogued."""

import pytest

from flightline.severity import ANSWERS
from flightline_node.checks import CHECKS


def test_every_check_and_nothing_else_has_an_answer():
    assert set(ANSWERS) == set(CHECKS)


@pytest.mark.parametrize("check", sorted(ANSWERS))
def test_the_answer_says_yes_or_no_and_why(check):
    assert ANSWERS[check].startswith(("Yes", "No", "By NVIDIA's catalogue"))
    assert len(ANSWERS[check].split()) > 3
