"""A short fuzz of every parser on each test run; `make fuzz` runs it for long."""

import pytest

from flightline_node.read.parsers import PARSERS
from tests.fuzz.run import fuzz, seeds


@pytest.mark.parametrize("name", PARSERS)
def test_only_facts_or_parse_error(name):
    assert fuzz(PARSERS[name], cases=150, seed=7)[0] == 0


@pytest.mark.parametrize("name", PARSERS)
def test_there_is_something_to_mutate(name):
    assert seeds(PARSERS[name]), f"no fixture that {name} can read"
