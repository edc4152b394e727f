"""/proc/uptime."""

from tests.unit.parsers.hosttools import parse, read


def test_recorded():
    assert read("uptime", "proc/debian12-uptime.txt")["uptime_s"] > 2000
    assert parse("uptime", "12.5\n") == {"uptime_s": 12.5}
