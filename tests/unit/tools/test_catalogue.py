"""docs/checks.md says what the check files say."""

from flightline.fleet.checks import FLEET_CHECKS
from flightline_node.judge.checks import CHECKS
from tools.catalogue import PAGE, first_command, render


def test_the_page_is_generated_from_the_checks():
    page = render(CHECKS.values())
    assert PAGE.read_text() == page, "run: .venv/bin/python -m tools.catalogue"
    assert [name for name in [*CHECKS, *FLEET_CHECKS] if page.count(f"\n## {name}\n") != 1] == []


def test_every_check_has_a_first_command():
    assert [name for name, check in CHECKS.items() if not first_command(check)] == []


def test_every_check_says_whether_a_paid_node_goes_out_of_service_for_it():
    for name, check in CHECKS.items():
        assert check.out_of_service.startswith(("Yes", "No", "By NVIDIA's catalogue")), name
        assert len(check.out_of_service.split()) > 3, name
