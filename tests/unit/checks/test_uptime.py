"""uptime: long up, booted just now, unreadable."""

import pytest

from flightline_node.model import Status
from tests.harness import BROKEN, judge_facts, only, status


@pytest.mark.parametrize(("seconds", "wanted"), [(299.0, "INFO"), (300.0, "PASS"), (9e6, "PASS")])
def test_uptime(seconds, wanted):
    (finding,) = judge_facts("uptime", {"uptime": {"uptime_s": seconds}})
    assert (finding.status, finding.measured) == (Status(wanted), seconds)


@pytest.mark.parametrize(
    ("boots", "wanted"),
    [
        ([0, 1800, 3600], "WARN"),
        ([0, 1800, 3601], "PASS"),
        ([0, 600], "PASS"),
        ([0, 4000, 8000], "PASS"),
        ([], "PASS"),
        (None, "PASS"),
    ],
)
def test_reboot_loop(boots, wanted):
    facts = {"uptime": {"uptime_s": 9e6}, "sysfs": {"boots": boots} if boots is not None else {}}
    assert status(judge_facts("uptime", facts)) is Status(wanted)
    if wanted == "WARN":
        assert only(judge_facts("uptime", facts), Status.WARN).measured == len(boots)
        assert status(judge_facts("uptime", facts, thresholds={"uptime.boots": 4})) is Status.PASS


def test_unknown():
    assert status(judge_facts("uptime", {"uptime": BROKEN})) is Status.UNKNOWN
