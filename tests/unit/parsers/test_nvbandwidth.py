"""nvbandwidth: both layouts give the same facts; waived tests, errors, and what is not nvbandwidth's."""

import json

import pytest

from flightline_node.model import ParseError
from flightline_node.read.parsers import PARSERS
from tests.harness import sample
from tests.unit.parsers.hosttools import read

NAMES = [
    "host_to_device_memcpy_ce",
    "device_to_host_memcpy_ce",
    "device_to_device_memcpy_read_ce",
    "device_to_device_memcpy_write_ce",
]


def parse(text):
    return PARSERS["nvbandwidth"].parse({"nvbandwidth.json": text if isinstance(text, bytes) else text.encode()})


def test_text_of_an_old_version():
    facts = read("nvbandwidth", "nvbandwidth/a100-v04.txt")
    assert facts["version"] == "0.4"
    assert [test["name"] for test in facts["tests"]] == NAMES
    assert {test["status"] for test in facts["tests"]} == {"Passed"}
    host, _, peer, _ = (test["matrix"] for test in facts["tests"])
    assert len(host) == 1
    assert [round(value) for value in host[0]] == [25] * 8
    assert [len(row) for row in peer] == [8] * 8
    assert [peer[index][index] for index in range(8)] == [None] * 8
    assert all(270 < value < 272 for row in peer for value in row if value)


def test_json():
    facts = read("nvbandwidth", "nvbandwidth/h100-v08.json")
    assert facts["version"] == "0.8"
    assert [test["name"] for test in facts["tests"]] == NAMES
    assert facts["tests"][0]["about"] == "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)"
    assert facts["tests"][2]["matrix"][1][1] is None
    assert 369 < facts["tests"][2]["matrix"][1][2] < 373


def test_one_gpu_waives_peer_copies():
    tests = read("nvbandwidth", "nvbandwidth/l4-v08-waived.txt")["tests"]
    assert [(test["status"], test["matrix"]) for test in tests] == [
        ("Passed", [[12.71]]),
        ("Passed", [[13.02]]),
        ("Waived", []),
        ("Waived", []),
    ]


def test_errors():
    facts = read("nvbandwidth", "nvbandwidth/v08-error.json")
    assert facts["tests"] == []
    assert facts["error"].startswith("[CUDA_ERROR_SYSTEM_NOT_READY]")
    wrong = read("nvbandwidth", "nvbandwidth/h100-v08-wrong-data.json")["tests"][2]
    assert (wrong["status"], wrong["matrix"]) == ("Error", [])
    assert "pattern" in wrong["error"]


def test_text_cut_in_a_test_has_no_result_for_it():
    text = sample("nvbandwidth/a100-v04.txt").decode()
    facts = parse(text[: text.index("SUM host") - 90])
    assert facts["tests"][0]["status"] == "Running"
    assert facts["tests"][0]["matrix"] == []


@pytest.mark.parametrize("text", ["{}", '{"nvbandwidth": []}', '{"nvbandwidth": {}}', "Segmentation fault\n", "-j?\n"])
def test_anything_else_is_refused(text):
    with pytest.raises(ParseError):
        parse(text)


def test_more_than_it_prints_is_refused_not_cut():
    with pytest.raises(ParseError, match="no more than"):
        parse(sample("nvbandwidth/a100-v04.txt") * 1600)


def test_odd_cells_are_not_numbers():
    case = {"name": NAMES[0], "status": "Passed", "bandwidth_matrix": [["N/A", "this", None, [], "nan", "25.5"], 7]}
    (test,) = parse(json.dumps({"nvbandwidth": {"testcases": [case]}}))["tests"]
    assert test["matrix"] == [[None, None, None, None, None, 25.5]]


def test_text_of_wrong_data_keeps_what_was_seen_first():
    text = (
        "nvbandwidth Version: v0.7\n\nRunning device_to_device_memcpy_read_ce.\n"
        " Invalid value when checking the pattern at 0x7f00aa000000\n Current offset : 8 \n"
        "ASSERT in expression h_errorFlag == 0 in void memcmpPatternHelper() : memcpy.cpp:165\n"
    )
    (test,) = parse(text)["tests"]
    assert (test["status"], test["error"].split(" at ")[0]) == ("Error", "Invalid value when checking the pattern")


def test_an_indented_text_reads_alike():
    text = sample("nvbandwidth/a100-v04.txt").decode()
    assert parse("".join(f"        {line}\n" for line in text.splitlines())) == parse(text)
