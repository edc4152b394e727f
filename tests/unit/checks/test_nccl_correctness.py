"""nccl_correctness: wrong values always fail; unchecked and unfinished runs are no pass."""

import pytest

from flightline_node.read.parsers import nccl_tests
from tests.harness import only, sample

from .table import FAIL, INVESTIGATE, PASS, REPLACE, SKIP, UNKNOWN, WARN, judging, row, table

GOOD = {"collective": "all_reduce", "ranks": 8, "hosts": 1, "rows": 9, "complete": True, "wrong": 0, "out_of_bounds": 0}


def judge(*runs, instance_type="p5.48xlarge"):
    return judging("nccl_correctness", {"nccl_tests": {"runs": list(runs)}}, instance_type)


def fixture(name, file="nccl-all_reduce.log"):
    return nccl_tests.parse({file: sample(f"nccl_tests/{name}")})["runs"]


def log(text):
    """The end of a good run's log replaced; by hand after nccl-tests src/common.h and src/util.cu."""
    whole = sample("nccl_tests/h100-8gpu-all_reduce.log").decode()
    return nccl_tests.parse({"nccl-all_reduce.log": text(whole).encode()})


BUSY = "ip-10-0-0-7: Test CUDA failure common.cu:1003 'CUDA-capable device(s) is/are busy or unavailable'\n"
BUSY += " .. ip-10-0-0-7 pid 77: Test failure common.cu:1178\n"


test_nccl_correctness = table(
    *(row("one run", judge({**GOOD, **change}), wanted)
        for change, wanted in (
            ({}, PASS), ({"wrong": 4}, FAIL), ({"out_of_bounds": 2}, FAIL), ({"wrong": 1, "complete": False}, FAIL),
            ({"wrong": None, "out_of_bounds": 3}, FAIL), ({"wrong": None}, WARN),
            ({"wrong": None, "max_error": 5e-07}, PASS), ({"complete": False}, UNKNOWN), ({"rows": 0}, UNKNOWN),
            ({"out_of_bounds": None}, UNKNOWN),
        )),
    row("remedy names the node only when it was alone", judge({**GOOD, "wrong": 1}), FAIL, remedy=REPLACE),
    row("remedy names the node only when it was alone", judge({**GOOD, "wrong": 1, "hosts": 2}), FAIL,
        remedy=INVESTIGATE),
    *(row("whole logs", judge(*fixture(name)), wanted)
        for name, wanted in [
            ("h100-8gpu-all_reduce.log", PASS), ("h100-2node-all_reduce-debug.log", PASS),
            ("wrong-values-all_reduce.log", FAIL), ("truncated-all_reduce.log", UNKNOWN),
            ("a100-old-all_reduce.log", PASS), ("a100-old-unchecked-all_gather.log", WARN),
            ("h100-8gpu-alltoall.log", PASS),
        ]),
    row("needs no type but a GPU", judge(GOOD, instance_type="none"), PASS),
    row("needs no type but a GPU", judge(GOOD, instance_type="trn1.32xlarge"), SKIP),
    row("other bits in a repeated run", judge({**GOOD, "bitwise_mismatches": 3}), WARN, measured=3, remedy=INVESTIGATE),
    row("other bits in a repeated run", judge({**GOOD, "bitwise_mismatches": 0}), PASS),
    row("other bits in a repeated run", judge({**GOOD, "bitwise_mismatches": 3, "wrong": 1}), FAIL),
    row("the collective is named", judge(GOOD), PASS, message="no wrong value in all_reduce"),
    row("the collective is named", judge({**GOOD, "collective": "", "wrong": 2}), FAIL,
        message="a test without a name: 2 wrong values"),
    row("the test calls its own bandwidth failed",
        judging("nccl_busbw",
        {"nccl_tests": log(lambda whole: "".join(line.rstrip("\n") + " FAILED\n" if "Avg bus bandwidth" in line else line
        for line in whole.splitlines(True)))}), FAIL, says="Avg bus bandwidth FAILED"),
    row("the test calls its own bandwidth failed", judging("nccl_busbw", {"nccl_tests": log(lambda whole: whole)}),
        PASS),
)  # fmt: skip


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
    finding = only(judging(check, {"nccl_tests": facts}), UNKNOWN)
    assert text.split("'")[1] in finding.message


@pytest.mark.parametrize("check", ["nccl_correctness", "nccl_busbw"])
def test_a_failure_behind_a_whole_table_is_no_pass(check):
    facts = log(lambda whole: whole + BUSY)
    assert facts["runs"][0]["complete"]
    assert "busy or unavailable" in only(judging(check, {"nccl_tests": facts}), UNKNOWN).message
