"""/proc/loadavg."""

import pytest

from flightline_node.model import ParseError
from tests.unit.parsers.hosttools import parse, read


def test_recorded():
    assert read("loadavg", "proc/debian12-loadavg.txt") == {
        "load1": 0.03,
        "load5": 0.23,
        "load15": 0.3,
        "runnable": 2,
        "processes": 95,
    }


@pytest.mark.parametrize("text", ["", "0.1 0.2\n", "nan 0 0 1/2 3\n", "0.1 0.2 0.3 1-2 3\n", "0.1 0.2 0.3 1/x 3\n"])
def test_anything_else_is_refused(text):
    with pytest.raises(ParseError):
        parse("loadavg", text)
