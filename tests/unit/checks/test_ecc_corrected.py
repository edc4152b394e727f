"""ecc_corrected: few, many, unreadable."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


@pytest.mark.parametrize(("count", "wanted"), [(0, Status.PASS), (100, Status.PASS), (101, Status.WARN)])
def test_count(count, wanted):
    facts = gpus.put(gpus.node(), 5, "ecc_corrected_volatile", count)
    findings = judge_facts("ecc_corrected", facts)
    assert status(findings) is wanted
    if wanted is Status.WARN:
        assert (findings[0].device["index"], findings[0].remedy) == (5, Remedy.INVESTIGATE)


def test_limit_is_the_site_s():
    facts = gpus.put(gpus.node(), 5, "ecc_corrected_volatile", 101)
    assert status(judge_facts("ecc_corrected", facts, thresholds={"ecc_corrected.max_corrected": 5000})) is Status.PASS


@pytest.mark.parametrize("value", ["[Unknown Error]", None])
def test_unreadable_is_unknown(value):
    facts = gpus.put(gpus.node(), 5, "ecc_corrected_volatile", value)
    assert only(judge_facts("ecc_corrected", facts), Status.UNKNOWN).device["index"] == 5


def test_a_gpu_with_mig_on_shows_no_count():
    facts = gpus.put(gpus.put(gpus.node(), 5, "mig_mode", "Enabled"), 5, "ecc_corrected_volatile", None)
    assert status(judge_facts("ecc_corrected", facts)) is Status.PASS
    facts = gpus.put_all(gpus.put_all(gpus.node(), "mig_mode", "Enabled"), "ecc_corrected_volatile", None)
    assert "MIG" in only(judge_facts("ecc_corrected", facts), Status.SKIP).message
