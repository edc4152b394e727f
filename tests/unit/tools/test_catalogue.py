"""docs/checks.md says what the check files say."""

import pytest

from flightline.fleet.checks import FLEET_CHECKS
from flightline_node.judge.checks import CHECKS
from tools.catalogue import CORPUS, PAGE, first_command, render, tried

PAGE_NOW = render(CHECKS.values())


def entry(name):
    return PAGE_NOW.split(f"\n## {name}\n", 1)[1].split("\n#", 1)[0]


def test_the_page_is_generated_from_the_checks():
    assert PAGE.read_text() == PAGE_NOW, "run: .venv/bin/python -m tools.catalogue"


@pytest.mark.parametrize("name", [*CHECKS, *FLEET_CHECKS])
def test_every_check_has_one_heading(name):
    assert PAGE_NOW.count(f"\n## {name}\n") == 1


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_every_check_has_an_entry_with_its_texts(check):
    found = entry(check.id)
    for text in (check.what, check.why, check.remedy, check.source, *(t.source for t in check.thresholds)):
        assert text in found
    assert first_command(check) and f"- First: `{first_command(check)}`" in found


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_every_check_says_whether_a_paid_node_goes_out_of_service_for_it(check):
    assert check.out_of_service.startswith(("Yes", "No", "By NVIDIA's catalogue"))
    assert len(check.out_of_service.split()) > 3


def test_every_check_has_its_counts_on_the_corpus():
    assert set(tried(CORPUS.read_text())) == set(CHECKS), "run: make corpus"
