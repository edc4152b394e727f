"""row_remap_histogram: banks with, low on, and without spare rows."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status

from . import gpus


def judge(**banks):
    facts = gpus.node()
    for name, value in banks.items():
        gpus.put(facts, 1, f"remap.histogram.{name}", value)
    return judge_facts("row_remap_histogram", facts)


def test_all_spares():
    assert "2560" in only(judge(), Status.PASS).message


def test_bank_without_spares_warns():
    finding = only(judge(max=2558, none=2), Status.WARN)
    assert (finding.device["index"], finding.measured, finding.remedy) == (1, 2, Remedy.REPLACE)


def test_low_bank_is_information():
    assert only(judge(max=2559, low=1), Status.INFO).measured == 1


@pytest.mark.parametrize("banks", [{"none": "ERR!"}, {"max": None}, {"max": 0}])
def test_unreadable_is_unknown(banks):
    assert only(judge(**banks), Status.UNKNOWN).device["index"] == 1


def test_no_histogram():
    assert status(judge_facts("row_remap_histogram", gpus.put_all(gpus.node(), "remap", None))) is Status.SKIP
    facts = gpus.node()
    for gpu in facts["nvidia_smi"]["gpus"]:
        del gpu["remap"]["histogram"]
    assert status(judge_facts("row_remap_histogram", facts)) is Status.SKIP


def test_a_gpu_with_mig_on_does_not_show_it():
    facts = gpus.put(gpus.put(gpus.node(), 4, "mig_mode", "Enabled"), 4, "remap", None)
    assert status(judge_facts("row_remap_histogram", facts)) is Status.PASS
    facts = gpus.put_all(gpus.put_all(gpus.node(), "mig_mode", "Enabled"), "remap", None)
    assert "MIG" in only(judge_facts("row_remap_histogram", facts), Status.SKIP).message
