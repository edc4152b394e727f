"""driver_version: pin, minimum of the type, no expectation, unreadable."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def judge(version, instance_type="p5en.48xlarge", **expected):
    return judge_facts("driver_version", gpus.node(driver_version=version), instance_type, expected=expected)


def test_without_a_pin_the_version_is_shown():
    finding = only(judge("580.95.05"), Status.PASS)
    assert finding.measured == "580.95.05"
    assert "no version pinned" in finding.message


@pytest.mark.parametrize("pin", ["580", "580.95.05"])
def test_pin_kept(pin):
    assert only(judge("580.95.05", driver_version=pin), Status.PASS).expected == pin


@pytest.mark.parametrize("version", ["550.54.15", "595.58.03"])
def test_pin_missed(version):
    finding = only(judge(version, driver_version="580.95.05"), Status.FAIL)
    assert (finding.measured, finding.expected, finding.remedy) == (version, "580.95.05", Remedy.UPDATE_SOFTWARE)


@pytest.mark.parametrize(
    ("version", "wanted"), [("550.54.15", Status.FAIL), ("580.95.05", Status.PASS), ("595.58.03", Status.PASS)]
)
def test_minimum_of_the_type(version, wanted):
    assert status(judge(version, "p6-b300.48xlarge")) is wanted


def test_numbers_not_text_are_compared():
    assert status(judge("1000.1", driver_minimum="580")) is Status.PASS


@pytest.mark.parametrize("version", [None, "Not Found", "ERR!", "[N/A]"])
def test_unreadable_is_unknown(version):
    assert status(judge(version)) is Status.UNKNOWN
