"""docs/checks.md says what the check files say."""

from flightline.catalogue import PAGE, render
from flightline_node.checks import CHECKS


def test_the_page_is_generated_from_the_checks():
    assert PAGE.read_text() == render(CHECKS.values()), "run: .venv/bin/python -m flightline.catalogue"


def test_every_check_has_an_entry_with_its_texts():
    page = render(CHECKS.values())
    for check in CHECKS.values():
        entry = page.split(f"## {check.id}\n", 1)[1].split("\n## ", 1)[0]
        for text in (check.what, check.why, check.remedy, check.source, *(t.source for t in check.thresholds)):
            assert text in entry
