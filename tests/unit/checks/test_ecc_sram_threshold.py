"""ecc_sram_threshold: flag not set, set, not printed, unreadable."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def test_below():
    assert status(judge_facts("ecc_sram_threshold", gpus.node())) is Status.PASS


def test_exceeded():
    finding = only(
        judge_facts("ecc_sram_threshold", gpus.put(gpus.node(), 6, "sram_threshold_exceeded", True)), Status.FAIL
    )
    assert (finding.device["index"], finding.remedy) == (6, Remedy.REPLACE)


def test_not_printed_or_not_kept():
    for facts in (
        gpus.drop_all(gpus.node(), "sram_threshold_exceeded"),
        gpus.put_all(gpus.node(), "sram_threshold_exceeded", None),
    ):
        assert status(judge_facts("ecc_sram_threshold", facts)) is Status.SKIP


@pytest.mark.parametrize("value", ["ERR!", None])
def test_one_unreadable_is_unknown(value):
    facts = gpus.put(gpus.node(), 6, "sram_threshold_exceeded", value)
    assert only(judge_facts("ecc_sram_threshold", facts), Status.UNKNOWN).device["index"] == 6
