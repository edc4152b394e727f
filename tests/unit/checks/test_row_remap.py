"""row_remap: failed, pending, used up, some, none, unreadable, not there."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def judge(instance_type="p5.48xlarge", **remap):
    facts = gpus.node()
    for name, value in remap.items():
        gpus.put(facts, 4, f"remap.{name}", value)
    return judge_facts("row_remap", facts, instance_type)


def test_none():
    assert only(judge(), Status.PASS)
    assert only(judge("none"), Status.PASS)


@pytest.mark.parametrize(
    ("remap", "remedy"),
    [
        ({"failure": True}, Remedy.REPLACE),
        ({"failure": True, "pending": True}, Remedy.REPLACE),
        ({"pending": True}, Remedy.RESET_GPU),
        ({"uncorrected": 512}, Remedy.REPLACE),
        ({"pending": True, "uncorrected": 600}, Remedy.REPLACE),
    ],
)
def test_faults(remap, remedy):
    finding = only(judge(**remap), Status.FAIL)
    assert (finding.device["index"], finding.remedy) == (4, remedy)


def test_rows_remapped_are_information():
    findings = judge(uncorrected=3)
    assert only(findings, Status.INFO).measured == 3
    assert only(findings, Status.PASS)


@pytest.mark.parametrize("remap", [{"failure": "ERR!"}, {"pending": None}, {"uncorrected": "[Unknown Error]"}])
def test_unreadable_is_unknown(remap):
    assert only(judge(**remap), Status.UNKNOWN).device["index"] == 4


def test_one_gpu_without_is_unknown():
    assert only(judge_facts("row_remap", gpus.put(gpus.node(), 4, "remap", None)), Status.UNKNOWN).device["index"] == 4
    assert status(judge_facts("row_remap", gpus.put(gpus.node(), 4, "remap", "GPU is lost"))) is Status.UNKNOWN


def test_gpus_that_retire_pages_instead():
    assert status(judge_facts("row_remap", gpus.node(gpus.T4), "g4dn.metal")) is Status.SKIP
    assert status(judge_facts("row_remap", gpus.drop_all(gpus.node(), "remap"))) is Status.SKIP


def test_flags_without_counts_are_enough_unless_the_count_is_there_and_cannot_be_read():
    flags = {"pending": False, "failure": False}
    assert status(judge_facts("row_remap", gpus.put_all(gpus.node(), "remap", flags))) is Status.PASS
    broken = {**flags, "uncorrected": None}
    assert status(judge_facts("row_remap", gpus.put_all(gpus.node(), "remap", broken))) is Status.UNKNOWN


def test_a_block_of_na_is_a_product_without_remapping():
    na = {"corrected": None, "uncorrected": None, "pending": None, "failure": None, "histogram": None}
    assert status(judge_facts("row_remap", gpus.put_all(gpus.node(), "remap", na))) is Status.SKIP
    assert only(judge_facts("row_remap", gpus.put(gpus.node(), 3, "remap", na)), Status.UNKNOWN).device["index"] == 3


def test_a_gpu_with_mig_on_does_not_show_it():
    facts = gpus.put(gpus.put(gpus.node(), 4, "mig_mode", "Enabled"), 4, "remap", None)
    assert status(judge_facts("row_remap", facts)) is Status.PASS
    assert status(judge_facts("row_remap", gpus.put(facts, 4, "remap", "GPU is lost"))) is Status.UNKNOWN
    facts = gpus.put_all(gpus.put_all(gpus.node(), "mig_mode", "Enabled"), "remap", None)
    assert "MIG" in only(judge_facts("row_remap", facts), Status.SKIP).message
