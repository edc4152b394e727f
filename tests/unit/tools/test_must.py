"""docs/must.md says what the checks declare, and asks for what an operator wants measured."""

import pytest

from flightline_node.judge.checks import CHECKS
from flightline_node.judge.must import table_of
from flightline_node.know.expected import resolve
from flightline_node.model import LEVELS, Site
from tests.hostile.operator_view import WANTED
from tools import must


def test_the_page_is_generated_from_the_checks():
    assert must.PAGE.read_text() == must.render(), "run: .venv/bin/python -m tools.must"


def test_every_reason_is_declared_by_a_check_or_belongs_to_all():
    declared = {reason.id for check in CHECKS.values() for reason in check.skips}
    assert set(must.REASONS) - declared == {"not_asked", "not_collected", "no_expectation", "waived"}


@pytest.mark.parametrize(("kind", "level"), sorted(WANTED))
def test_the_table_asks_for_what_an_operator_wants_measured(kind, level):
    due = [one for one in CHECKS.values() if LEVELS.index(one.level) <= LEVELS.index(level)]
    table = table_of(due, (), Site(resolve(kind), {}, level))
    assert {one: must.cell(table[one]) for one in WANTED[kind, level]} == dict.fromkeys(WANTED[kind, level], must.MUST)
