"""compute_mode: open, exclusive, closed, unreadable, not printed."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


@pytest.mark.parametrize("mode", ["Default", "Exclusive_Process", "Exclusive_Thread"])
def test_a_mode_that_lets_programs_in(mode):
    facts = gpus.put_all(gpus.node(), "compute_mode", mode)
    assert only(judge_facts("compute_mode", facts), Status.PASS).message == f"compute mode {mode}"
    assert status(judge_facts("compute_mode", facts, "none")) is Status.PASS


@pytest.mark.parametrize("mode", ["Prohibited", "PROHIBITED"])
def test_a_closed_gpu_fails(mode):
    finding = only(judge_facts("compute_mode", gpus.put(gpus.node(), 5, "compute_mode", mode)), Status.FAIL)
    assert (finding.device["index"], finding.remedy, finding.measured) == (5, Remedy.FIX_CONFIG, mode)
    assert finding.expected == "Default"


@pytest.mark.parametrize("value", [None, "[Unknown Error]", "GPU is lost"])
def test_unreadable_on_one_is_unknown(value):
    facts = gpus.put(gpus.node(), 3, "compute_mode", value)
    assert only(judge_facts("compute_mode", facts), Status.UNKNOWN).device["index"] == 3


def test_not_printed_by_any_is_skipped_with_its_reason():
    found = only(judge_facts("compute_mode", gpus.drop_all(gpus.node(), "compute_mode")), Status.SKIP)
    assert "not printed" in found.message
    found = only(judge_facts("compute_mode", gpus.put_all(gpus.node(), "compute_mode", None)), Status.SKIP)
    assert "this product has none" in found.message
