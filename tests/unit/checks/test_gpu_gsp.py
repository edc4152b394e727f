"""gpu_gsp: firmware of the driver's release, off, not printed."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only

from . import gpus


def test_same_release():
    assert "580.95.05" in only(judge_facts("gpu_gsp", gpus.node()), Status.PASS).message


def test_other_release_fails():
    finding = only(judge_facts("gpu_gsp", gpus.put(gpus.node(), 1, "gsp_firmware_version", "570.86.15")), Status.WARN)
    assert (finding.measured, finding.expected, finding.remedy) == ("570.86.15", "580.95.05", Remedy.UPDATE_SOFTWARE)


def test_off_or_not_printed_is_skipped():
    off = only(judge_facts("gpu_gsp", gpus.put_all(gpus.node(), "gsp_firmware_version", None)), Status.SKIP)
    assert "proprietary" in off.message
    old = only(judge_facts("gpu_gsp", gpus.drop_all(gpus.node(), "gsp_firmware_version")), Status.SKIP)
    assert "510" in old.message


@pytest.mark.parametrize("value", [None, "ERR!"])
def test_one_gpu_without_is_unknown(value):
    facts = gpus.put(gpus.node(), 6, "gsp_firmware_version", value)
    assert only(judge_facts("gpu_gsp", facts), Status.UNKNOWN).device["index"] == 6
