"""/proc/uptime."""

import pytest

from flightline_node.model import ParseError
from tests.unit.parsers.hosttools import parse, read


def test_recorded():
    assert read("uptime", "proc/debian12-uptime.txt")["uptime_s"] > 2000
    assert parse("uptime", "12.5\n") == {"uptime_s": 12.5}


@pytest.mark.parametrize(
    "text", ["", "\x1b[0m", "\x1b[0m \n", "up 3 days\n", "nan 1\n", "-1 2\n", "1 2 3\n", "9" * 400]
)
def test_anything_else_is_refused(text):
    with pytest.raises(ParseError):
        parse("uptime", text)
