"""/proc/loadavg."""

from tests.unit.parsers.hosttools import read


def test_recorded():
    assert read("loadavg", "proc/debian12-loadavg.txt") == {
        "load1": 0.03,
        "load5": 0.23,
        "load15": 0.3,
        "runnable": 2,
        "processes": 95,
    }
