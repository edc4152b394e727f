"""nccl_correctness: wrong values always fail; unchecked and unfinished runs are no pass."""

import pytest

from flightline_node.model import Remedy, Status
from flightline_node.read.parsers import nccl_tests
from tests.harness import judge_facts, only, sample, status

GOOD = {"collective": "all_reduce", "ranks": 8, "hosts": 1, "rows": 9, "complete": True, "wrong": 0, "out_of_bounds": 0}


def judge(*runs, instance_type="p5.48xlarge"):
    return judge_facts("nccl_correctness", {"nccl_tests": {"runs": list(runs)}}, instance_type)


def fixture(name, file="nccl-all_reduce.log"):
    return nccl_tests.parse({file: sample(f"nccl_tests/{name}")})["runs"]


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({}, Status.PASS),
        ({"wrong": 4}, Status.FAIL),
        ({"out_of_bounds": 2}, Status.FAIL),
        ({"wrong": 1, "complete": False}, Status.FAIL),
        ({"wrong": None, "out_of_bounds": 3}, Status.FAIL),
        ({"wrong": None}, Status.WARN),
        ({"wrong": None, "max_error": 5e-07}, Status.PASS),
        ({"complete": False}, Status.UNKNOWN),
        ({"rows": 0}, Status.UNKNOWN),
        ({"out_of_bounds": None}, Status.UNKNOWN),
    ],
)
def test_one_run(change, wanted):
    assert status(judge({**GOOD, **change})) is wanted


def test_remedy_names_the_node_only_when_it_was_alone():
    assert only(judge({**GOOD, "wrong": 1}), Status.FAIL).remedy is Remedy.REPLACE
    assert only(judge({**GOOD, "wrong": 1, "hosts": 2}), Status.FAIL).remedy is Remedy.INVESTIGATE


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("h100-8gpu-all_reduce.log", Status.PASS),
        ("h100-2node-all_reduce-debug.log", Status.PASS),
        ("wrong-values-all_reduce.log", Status.FAIL),
        ("truncated-all_reduce.log", Status.UNKNOWN),
        ("a100-old-all_reduce.log", Status.PASS),
        ("a100-old-unchecked-all_gather.log", Status.WARN),
        ("h100-8gpu-alltoall.log", Status.PASS),
    ],
)
def test_whole_logs(name, wanted):
    assert status(judge(*fixture(name))) is wanted


def test_needs_no_type_but_a_gpu():
    assert status(judge(GOOD, instance_type="none")) is Status.PASS
    assert status(judge(GOOD, instance_type="trn1.32xlarge")) is Status.SKIP


def test_other_bits_in_a_repeated_run():
    finding = only(judge({**GOOD, "bitwise_mismatches": 3}), Status.WARN)
    assert (finding.measured, finding.remedy) == (3, Remedy.INVESTIGATE)
    assert status(judge({**GOOD, "bitwise_mismatches": 0})) is Status.PASS
    assert status(judge({**GOOD, "bitwise_mismatches": 3, "wrong": 1})) is Status.FAIL


def test_the_collective_is_named():
    assert only(judge(GOOD), Status.PASS).message == "no wrong value in all_reduce"
    nameless = {**GOOD, "collective": "", "wrong": 2}
    assert only(judge(nameless), Status.FAIL).message == "a test without a name: 2 wrong values"


def log(text):
    """The end of a good run's log replaced; by hand after nccl-tests src/common.h and src/util.cu."""
    whole = sample("nccl_tests/h100-8gpu-all_reduce.log").decode()
    return nccl_tests.parse({"nccl-all_reduce.log": text(whole).encode()})


BUSY = "ip-10-0-0-7: Test CUDA failure common.cu:1003 'CUDA-capable device(s) is/are busy or unavailable'\n"
BUSY += " .. ip-10-0-0-7 pid 77: Test failure common.cu:1178\n"


@pytest.mark.parametrize("check", ["nccl_correctness", "nccl_busbw"])
@pytest.mark.parametrize(
    "text",
    [
        BUSY.replace("CUDA-capable device(s) is/are busy or unavailable", words)
        for words in (
            "CUDA-capable device(s) is/are busy or unavailable",
            "out of memory",
            "unhandled system error (run with NCCL_DEBUG=INFO for details) / ",
        )
    ],
)
def test_why_a_run_died_is_in_the_message(check, text):
    facts = log(lambda whole: whole.split("# Out of bounds")[0][:-300] + "\n" + text)
    finding = only(judge_facts(check, {"nccl_tests": facts}), Status.UNKNOWN)
    assert text.split("'")[1] in finding.message


@pytest.mark.parametrize("check", ["nccl_correctness", "nccl_busbw"])
def test_a_failure_behind_a_whole_table_is_no_pass(check):
    facts = log(lambda whole: whole + BUSY)
    assert facts["runs"][0]["complete"]
    assert "busy or unavailable" in only(judge_facts(check, {"nccl_tests": facts}), Status.UNKNOWN).message


def test_the_test_calls_its_own_bandwidth_failed():
    facts = log(lambda whole: "".join(
        line.rstrip("\n") + " FAILED\n" if "Avg bus bandwidth" in line else line for line in whole.splitlines(True)
    ))  # fmt: skip
    finding = only(judge_facts("nccl_busbw", {"nccl_tests": facts}), Status.FAIL)
    assert "Avg bus bandwidth FAILED" in finding.message
    assert status(judge_facts("nccl_busbw", {"nccl_tests": log(lambda whole: whole)})) is Status.PASS
