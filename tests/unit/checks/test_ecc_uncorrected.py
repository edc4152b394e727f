"""ecc_uncorrected: volatile counts fail, aggregate counts are history."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def test_none():
    assert status(judge_facts("ecc_uncorrected", gpus.node())) is Status.PASS


def test_volatile_fails_and_names_the_memory():
    facts = gpus.put(gpus.node(), 2, "ecc_uncorrected_volatile", 3)
    gpus.put(facts, 2, "ecc.volatile.dram_uncorrectable", 3)
    finding = only(judge_facts("ecc_uncorrected", facts), Status.FAIL)
    assert (finding.device["index"], finding.measured, finding.remedy) == (2, 3, Remedy.RESET_GPU)
    assert finding.evidence == ("volatile dram_uncorrectable: 3",)


def test_aggregate_is_information():
    findings = judge_facts("ecc_uncorrected", gpus.put(gpus.node(), 2, "ecc_uncorrected_aggregate", 7))
    assert only(findings, Status.INFO).measured == 7
    assert status(findings) is Status.INFO


@pytest.mark.parametrize("value", ["ERR!", None])
def test_one_unreadable_is_unknown(value):
    facts = gpus.put(gpus.node(), 1, "ecc_uncorrected_volatile", value)
    assert only(judge_facts("ecc_uncorrected", facts), Status.UNKNOWN).device["index"] == 1


def test_no_counts():
    facts = gpus.put_all(gpus.node(), "ecc_uncorrected_volatile", None)
    assert status(judge_facts("ecc_uncorrected", facts)) is Status.UNKNOWN
    assert status(judge_facts("ecc_uncorrected", facts, "none")) is Status.SKIP
    assert status(judge_facts("ecc_uncorrected", facts, "g6f.large")) is Status.SKIP
    off = only(judge_facts("ecc_uncorrected", gpus.put_all(facts, "ecc_mode", "Disabled")), Status.SKIP)
    assert "ECC is off" in off.message


def test_a_counter_that_only_one_gpu_lacks_is_unknown():
    facts = gpus.put_all(gpus.node(), "ecc", {"volatile": {"dram_uncorrectable": 0, "sram_uncorrectable": 0}})
    assert status(judge_facts("ecc_uncorrected", facts)) is Status.PASS
    gpus.put(facts, 5, "ecc", {"volatile": {"dram_uncorrectable": None, "sram_uncorrectable": 0}})
    assert only(judge_facts("ecc_uncorrected", facts), Status.UNKNOWN).device["index"] == 5


def test_a_gpu_with_mig_on_shows_the_count_of_its_instances_or_none():
    facts = gpus.put_all(gpus.node(), "ecc", {"volatile": {"dram_uncorrectable": 0}})
    gpus.put(gpus.put(facts, 5, "mig_mode", "Enabled"), 5, "ecc", {"volatile": {"dram_uncorrectable": None}})
    assert status(judge_facts("ecc_uncorrected", facts)) is Status.PASS
    gpus.put(facts, 5, "ecc_uncorrected_volatile", 2)
    assert only(judge_facts("ecc_uncorrected", facts), Status.FAIL).device["index"] == 5
    gpus.put(facts, 5, "ecc_uncorrected_volatile", None)
    assert status(judge_facts("ecc_uncorrected", facts)) is Status.PASS
    gpus.put(facts, 5, "ecc_uncorrected_volatile", "[Unknown Error]")
    assert only(judge_facts("ecc_uncorrected", facts), Status.UNKNOWN).device["index"] == 5
    facts = gpus.put_all(gpus.put_all(gpus.node(), "mig_mode", "Enabled"), "ecc_uncorrected_volatile", None)
    assert "MIG" in only(judge_facts("ecc_uncorrected", facts), Status.SKIP).message
