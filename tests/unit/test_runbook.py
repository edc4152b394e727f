"""docs/runbook.md has a heading for every check, and says what the check files say."""

import pytest

from flightline.fleet_checks import FLEET_CHECKS
from flightline.runbook import FIRST, PAGE, first_command, render
from flightline_node.checks import CHECKS


def test_the_page_is_generated():
    assert PAGE.read_text() == render(CHECKS.values()), "run: .venv/bin/python -m flightline.runbook"


@pytest.mark.parametrize("name", [*CHECKS, *FLEET_CHECKS])
def test_every_check_has_its_heading(name):
    assert render(CHECKS.values()).count(f"\n## {name}\n") == 1


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_every_entry_has_a_first_command_and_the_remedy(check):
    entry = render(CHECKS.values()).split(f"\n## {check.id}\n", 1)[1].split("\n#", 1)[0]
    assert f"- First: `{first_command(check)}`" in entry
    assert first_command(check)
    assert f"- Do: {check.remedy}" in entry
    assert check.why in entry


def test_no_command_for_a_check_that_is_gone():
    assert set(FIRST) <= set(CHECKS)
