"""The labelled corpus: every fault found, with its status and remedy, and nothing else.

`make corpus` judges the same cases and writes docs/corpus.md.
"""

import re

import pytest

from flightline_node.judge.checks import CHECKS
from tests.corpus.cases import SOURCES, load
from tests.corpus.run import MUTATION, PAGE, main, run

CASES = load()


@pytest.fixture(scope="module")
def outcome():
    return run(CASES)


def test_every_answer_is_the_label_s(outcome):
    assert outcome.wrong == []
    assert outcome.right_verdicts == len(CASES)


def test_every_check_is_shown_to_fire_and_to_be_quiet(outcome):
    assert outcome.without_case == []
    assert [name for name, count in outcome.counts.items() if not count.quiet] == []


def test_one_check_s_cases_are_judged_alone(capsys):
    assert main(["--check", "raid"]) == 0
    told = capsys.readouterr().out
    fired, should = map(int, re.search(r"raid: fired in (\d+) of (\d+) cases, 0 false positives", told).groups())
    assert fired == should > 0


def test_a_wrong_label_would_be_noticed():
    cases = [case for case in CASES if case.expects][:1] + [
        case for case in CASES if not case.expects and not case.may
    ][:1]
    swapped = [case.__class__(**{**vars(case), "expects": other.expects}) for case, other in zip(cases, cases[::-1])]
    assert len(run(swapped).wrong) >= 2


def test_every_label_says_where_it_comes_from():
    assert {case.source for case in CASES} <= set(SOURCES)
    assert [case.id for case in CASES if not case.why] == []


def test_the_page_names_every_check():
    page = PAGE.read_text()
    assert [name for name in CHECKS if f"\n| {name} | " not in page] == []
    assert MUTATION.is_file()
