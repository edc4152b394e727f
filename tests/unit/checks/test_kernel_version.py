"""kernel_version: no pin, pin kept or broken, the type's minimum, not printed."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status


def judged(kernel, kind="p5.48xlarge", **expected):
    return judge_facts("kernel_version", {"versions": {"kernel": kernel}}, kind, expected=expected)


@pytest.mark.parametrize(
    ("kernel", "pin", "wanted"),
    [
        ("6.8.0-1018-aws", "6.8.0-1018-aws", "PASS"),
        ("6.8.0-1018-aws", "6.8", "PASS"),
        ("6.8.0-1019-aws", "6.8.0-1018", "FAIL"),
        ("6.1.147-172.266.amzn2023.x86_64", "6.1.147", "PASS"),
        ("6.12.1", "6.1", "FAIL"),
    ],
)
def test_pin(kernel, pin, wanted):
    assert status(judged(kernel, kernel_version=pin)) == wanted


def test_minimum_of_the_type():
    finding = only(judged("5.15.0-1080-aws", "p6-b200.48xlarge"), Status.FAIL)
    assert (finding.expected, finding.remedy) == ("6.1", Remedy.UPDATE_SOFTWARE)
    assert status(judged("6.8.0-1018-aws", "p6-b200.48xlarge")) is Status.PASS


def test_nothing_wanted():
    assert "no version pinned" in only(judged("6.8.0-1018-aws"), Status.PASS).message


def test_unknown():
    assert status(judge_facts("kernel_version", {"versions": {"efa_installer": "1.43.1"}})) is Status.UNKNOWN
