"""gpu_compute: any number that differs fails, over time, in memory, or from the other GPUs."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status
from tests.unit.parsers.hosttools import read

RIGHT, WRONG = "5f" * 32, "a7" * 32


def gpu(index, digest=RIGHT, **more):
    base = {"index": index, "name": "NVIDIA H100 80GB HBM3", "sm_count": 132, "products": 800, "mismatches": 0}
    return {**base, "digest": digest, "digest_at_end": digest, **more}


def judge(*gpus, instance_type="p5.48xlarge"):
    return judge_facts("gpu_compute", {"gpu_load": {"order": 8192, "gpus": list(gpus)}}, instance_type)


def healthy(*left_out):
    return [gpu(index) for index in range(8) if index not in left_out]


def test_equal_numbers_pass():
    (finding,) = judge(*healthy())
    assert finding.status is Status.PASS
    assert "6400 products" in finding.message


def test_one_wrong_product_fails():
    first = {"element": "24117248", "off_by": "0.015625"}
    finding = only(judge(*healthy(3), gpu(3, mismatches=1, first_mismatch=first)), Status.FAIL)
    assert (finding.remedy, finding.measured, finding.device["index"]) == (Remedy.REPLACE, 1, 3)
    assert "24117248 off by 0.015625" in finding.message


def test_a_result_that_changed_in_memory_fails():
    finding = only(judge(*healthy(2), gpu(2, digest_at_end=WRONG)), Status.FAIL)
    assert (finding.remedy, finding.device["index"]) == (Remedy.REPLACE, 2)


def test_always_wrong_differs_from_the_others():
    finding = only(judge(*healthy(5), gpu(5, WRONG)), Status.FAIL)
    assert (finding.remedy, finding.device["index"]) == (Remedy.REPLACE, 5)


def test_two_that_disagree_name_one_of_them_at_least():
    findings = judge(gpu(0), gpu(1, WRONG), instance_type="g5g.16xlarge")
    assert {finding.status for finding in findings} == {Status.FAIL}


def test_half_of_them_differ_and_nobody_is_trusted():
    findings = judge(*[gpu(index, RIGHT if index % 2 else WRONG) for index in range(8)])
    assert [finding.device["index"] for finding in findings] == list(range(8))
    assert {finding.status for finding in findings} == {Status.FAIL}


def test_gpus_of_another_kind_may_have_other_numbers():
    other = [gpu(index, WRONG, sm_count=114) for index in (6, 7)]
    assert status(judge(*healthy(6, 7), *other)) is Status.PASS


@pytest.mark.parametrize(
    "broken", [{"index": 7, "error": "the GPU hangs"}, gpu(7, mismatches=None), gpu(7, products=0), gpu(7, None)]
)
def test_what_was_not_compared_is_unknown(broken):
    assert only(judge(*healthy(7), broken), Status.UNKNOWN).device["index"] == 7


def test_a_gpu_that_is_not_there_is_unknown():
    assert only(judge(*healthy(7)), Status.UNKNOWN).expected == 8


def test_the_program_s_own_output():
    facts = read("gpu_load", "gpu_load/simulated-8-gpus.json")
    assert status(judge_facts("gpu_compute", {"gpu_load": facts})) is Status.PASS
    wrong = read("gpu_load", "gpu_load/simulated-wrong.json")
    finding = only(judge_facts("gpu_compute", {"gpu_load": wrong}, "g5g.16xlarge"), Status.FAIL)
    assert (finding.measured, finding.device["pci"]) == (117, "0000:11:00.0")


def test_not_run():
    findings = judge_facts("gpu_compute", {"gpu_load": {"not_run": "CUDA sees no GPU"}})
    assert only(findings, Status.UNKNOWN).remedy is Remedy.FIX_CONFIG
    assert status(judge_facts("gpu_compute", {}, "inf2.xlarge")) is Status.SKIP


def test_why_nothing_was_compared_is_said():
    hung = only(judge(*healthy(7), {"index": 7, "error": "the GPU hangs"}), Status.UNKNOWN)
    assert hung.message == "GPU 7: numbers not compared: the GPU hangs"
    assert "no product was compared" in only(judge(*healthy(7), gpu(7, products=0)), Status.UNKNOWN).message
