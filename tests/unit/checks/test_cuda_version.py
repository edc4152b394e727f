"""cuda_version: pin, minimum of the type, no expectation, unreadable."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def judge(version, instance_type="p5en.48xlarge", **expected):
    return judge_facts("cuda_version", gpus.node(cuda_version=version), instance_type, expected=expected)


def test_without_a_pin_the_version_is_shown():
    finding = only(judge("13.0"), Status.PASS)
    assert finding.measured == "13.0"
    assert "no version pinned" in finding.message


@pytest.mark.parametrize("pin", ["13", "13.0"])
def test_pin_kept(pin):
    assert only(judge("13.0", cuda_version=pin), Status.PASS).expected == pin


@pytest.mark.parametrize("version", ["12.4", "13.1"])
def test_pin_missed(version):
    finding = only(judge(version, cuda_version="13.0"), Status.FAIL)
    assert (finding.measured, finding.expected, finding.remedy) == (version, "13.0", Remedy.UPDATE_SOFTWARE)


@pytest.mark.parametrize(("version", "wanted"), [("12.4", Status.FAIL), ("13.0", Status.PASS), ("13.1", Status.PASS)])
def test_minimum_of_the_type(version, wanted):
    assert status(judge(version, "p6-b300.48xlarge")) is wanted


def test_numbers_not_text_are_compared():
    assert status(judge("13.10", cuda_minimum="13.9")) is Status.PASS


@pytest.mark.parametrize("version", [None, "Not Found", "ERR!", "[N/A]"])
def test_unreadable_is_unknown(version):
    assert status(judge(version)) is Status.UNKNOWN
