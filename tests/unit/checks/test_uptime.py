"""uptime: long up, booted just now, unreadable."""

import pytest

from flightline_node.model import Status
from tests.harness import BROKEN, judge_facts, status


@pytest.mark.parametrize(("seconds", "wanted"), [(299.0, "INFO"), (300.0, "PASS"), (9e6, "PASS")])
def test_uptime(seconds, wanted):
    (finding,) = judge_facts("uptime", {"uptime": {"uptime_s": seconds}})
    assert (finding.status, finding.measured) == (Status(wanted), seconds)


def test_unknown():
    assert status(judge_facts("uptime", {"uptime": BROKEN})) is Status.UNKNOWN
