"""dcgmi diag: every shape from 2.x to 4.x, JSON and table, and what is neither."""

import json

import pytest

from flightline_node.model import ParseError
from flightline_node.read.parsers import dcgm_diag
from tests.harness import sample


def read(name):
    return dcgm_diag.parse({"dcgm-diag.json": sample(f"dcgm_diag/{name}")})


def test_2x_text_warning_and_gpu_ids():
    facts = read("2x-memory-fail.json")
    assert facts["dcgm_version"] == "2.4.6"
    assert facts["tests"]["GPU Memory"] == "Fail"
    assert facts["tests"]["Denylist"] == facts["tests"]["PCIe"] == "Pass"
    (failure,) = facts["failures"]
    assert (failure["test"], failure["gpu"]) == ("GPU Memory", 5)
    assert failure["message"].startswith("A memory mismatch was detected on GPU 5")
    assert "error_id" not in failure


def test_3x_pass():
    facts = read("3x-pass.json")
    assert (facts["dcgm_version"], facts["driver_version"]) == ("3.3.5", "535.161.08")
    assert facts["tests"]["GPU Memory"] == "Pass"
    assert facts["tests"]["Pulse Test"] == "Skip"
    assert facts["failures"] == facts["warnings"] == []
    assert facts["serials"]["3"] == "1653023000003"


def test_3x_severity_names_and_misnamed_warning_key():
    facts = read("3x-fail-new-severity.json")
    by_test = {failure["test"]: failure for failure in facts["failures"]}
    assert by_test["Persistence Mode"] == {
        "test": "Persistence Mode",
        "gpu": 7,
        "error_id": 29,
        "severity": "CONFIG",
        "category": 8,
        "message": 'Persistence mode for GPU 7 is disabled. Enable persistence mode by running "nvidia-smi -i <gpuId>'
        ' -pm 1 " as root.',
    }
    assert (by_test["GPU Memory"]["gpu"], by_test["GPU Memory"]["severity"]) == (2, "ISOLATE")


def test_3x_before_renumbering_one_is_isolate():
    (failure,) = read("3x-fail-old-severity.json")["failures"]
    assert (failure["gpu"], failure["error_id"], failure["severity"]) == (1, 4, "ISOLATE")


@pytest.mark.parametrize(
    ("severity", "error_id", "name"),
    [
        (1, 4, "ISOLATE"),
        (2, 4, "ISOLATE"),
        (5, 29, "CONFIG"),
        (0, 10, "MONITOR"),
        (1, 10, "MONITOR"),
        (6, 9999, "RESET"),
        (1, 9999, "1"),
    ],
)
def test_severity_without_a_version_is_told_by_the_error(severity, error_id, name):
    warning = {"warning": "x", "error_id": error_id, "error_severity": severity}
    tests = [{"name": "T", "results": [{"gpu_id": "0", "status": "Fail", "warnings": [warning]}]}]
    document = {"DCGM GPU Diagnostic": {"test_categories": [{"category": "Hardware", "tests": tests}]}}
    facts = dcgm_diag.parse({"dcgm-diag.json": json.dumps(document).encode()})
    assert facts["failures"][0]["severity"] == name
    assert facts["severity_scheme"] == "unknown"


def test_4x_entities_and_repeated_summary():
    facts = read("4x-nvlink-fail.json")
    assert (facts["dcgm_version"], facts["driver_version"]) == ("4.2.3", "570.172.08")
    assert facts["tests"] == {"software": "Pass", "memory": "Pass", "pcie": "Fail"}
    (failure,) = facts["failures"]
    assert (failure["gpu"], failure["error_id"], failure["severity"]) == (3, 14, "TRIAGE")
    assert facts["serials"]["3"] == "1654424000003"


def test_4x_other_entity_keeps_its_name():
    result = {"entity_group": "CPU", "entity_id": 1, "status": "Fail"}
    document = {
        "DCGM Diagnostic": {"test_categories": [{"category": "H", "tests": [{"name": "cpu_eud", "results": [result]}]}]}
    }
    facts = dcgm_diag.parse({"dcgm-diag.json": json.dumps(document).encode()})
    assert facts["failures"] == [{"test": "cpu_eud", "entity": "CPU 1"}]


def test_runtime_error_is_facts():
    facts = read("runtime-error.json")
    assert facts["runtime_error"].endswith("Diagnostic is already running.")
    assert facts["tests"] == {}


def test_error_without_json_is_facts():
    facts = dcgm_diag.parse(
        {"dcgm-diag.json": b"Error: unable to establish a connection to the specified host: localhost\n"}
    )
    assert "unable to establish" in facts["runtime_error"]


def test_3x_table():
    facts = read("3x-table-fail.txt")
    assert (facts["dcgm_version"], facts["driver_version"]) == ("3.3.1", "535.129.03")
    assert facts["tests"]["GPU Memory"] == "Fail"
    assert facts["tests"]["Targeted Stress"] == facts["tests"]["Diagnostic"] == "Skip"
    assert len(facts["tests"]) == 13
    (failure,) = facts["failures"]
    assert (failure["test"], failure["gpu"]) == ("GPU Memory", 6)
    assert failure["message"].endswith(
        "Run a field diagnostic on the GPU. See the GPU Debug Guidelines for the next step."
    )


def test_4x_table():
    facts = read("4x-table-fail.txt")
    assert facts["tests"] == {"software": "Pass", "memory": "Fail", "pcie": "Pass"}
    (failure,) = facts["failures"]
    assert (failure["test"], failure["gpu"]) == ("memory", 1)
    assert failure["message"].endswith("'out of memory' for GPU 1")


def test_table_may_also_be_in_a_text_file():
    facts = dcgm_diag.parse({"dcgm-diag.txt": sample("dcgm_diag/4x-table-fail.txt")})
    assert facts["tests"]["memory"] == "Fail"


def test_text_around_the_document():
    text = sample("dcgm_diag/4x-nvlink-fail.json").decode()
    noisy = (
        "WARN { not JSON }\nSuccessfully ran diagnostic for group.\n"
        + text
        + "\ncommand terminated { with exit code 226\n"
    )
    assert dcgm_diag.parse({"dcgm-diag.json": noisy.encode()}) == read("4x-nvlink-fail.json")


def test_iterations_are_merged():
    run = json.loads(sample("dcgm_diag/3x-pass.json").decode())
    bad = json.loads(sample("dcgm_diag/3x-fail-old-severity.json").decode())
    facts = dcgm_diag.parse({"dcgm-diag.json": json.dumps({"iterations": [run, bad], "result": "Fail"}).encode()})
    assert facts["tests"]["GPU Memory"] == "Fail"
    assert facts["tests"]["Denylist"] == "Pass"


@pytest.mark.parametrize(
    ("statuses", "wanted"),
    [
        (["PASS", "PASS"], "Pass"),
        (["Pass", "Skip"], "Skip"),
        (["Pass", "Not Run"], "Not Run"),
        (["Pass", "Warn", "Skip"], "Warn"),
        (["FAIL", "Warn"], "Fail"),
        (["Pass", "Perhaps"], "Perhaps"),
        ([], "Not Run"),
    ],
)
def test_worst_over_the_gpus(statuses, wanted):
    results = [{"gpu_id": str(gpu), "status": status} for gpu, status in enumerate(statuses)]
    document = {
        "DCGM Diagnostic": {"test_categories": [{"category": "H", "tests": [{"name": "T", "results": results}]}]}
    }
    assert dcgm_diag.parse({"dcgm-diag.json": json.dumps(document).encode()})["tests"] == {"T": wanted}


def test_warning_of_a_passed_test_is_no_failure():
    result = {"gpu_id": "0", "status": "Pass", "warnings": [{"warning": "hot", "error_id": 10, "error_severity": 1}]}
    document = {
        "DCGM GPU Diagnostic": {
            "version": "3.3.9",
            "test_categories": [{"tests": [{"name": "T", "results": [result]}]}],
        }
    }
    facts = dcgm_diag.parse({"dcgm-diag.json": json.dumps(document).encode()})
    assert facts["failures"] == []
    assert facts["warnings"][0]["severity"] == "MONITOR"


@pytest.mark.parametrize(
    ("name", "share"),
    [
        *((name, share) for name in ("3x-pass.json", "4x-nvlink-fail.json") for share in (0.2, 0.6, 0.97)),
        ("3x-table-fail.txt", 0.2),
        ("3x-table-fail.txt", 0.6),
        ("4x-table-fail.txt", 0.2),
    ],
)
def test_cut_short(name, share):
    data = sample(f"dcgm_diag/{name}")
    with pytest.raises(ParseError):
        dcgm_diag.parse({"dcgm-diag.json": data[: int(len(data) * share)]})


@pytest.mark.parametrize("name", ["3x-table-fail.txt", "4x-table-fail.txt"])
def test_a_cut_table_keeps_the_failure_it_shows(name):
    data = sample(f"dcgm_diag/{name}")
    whole, cut = (dcgm_diag.parse({"dcgm-diag.json": part}) for part in (data, data[: int(len(data) * 0.97)]))
    assert "cut" not in whole
    assert cut["cut"] is True
    assert cut["failures"][0]["gpu"] == whole["failures"][0]["gpu"]


def test_a_row_that_is_cut_is_not_read():
    text = "| GPU Memory                | Pass - GPUs: 1, 2, 3                           |\n"
    text += "|                           | Fail - GPU: 0                                  |\n"
    text += "|                           | Fail - GPU: 1"
    assert dcgm_diag.parse({"dcgm-diag.json": text.encode()})["failures"] == [{"test": "GPU Memory", "gpu": 0}]


HEADED = """+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
|-----  Deployment  --------+------------------------------------------------|
| Error                     | GPU 3 has uncorrectable memory errors and row  |
|                           |  remappings are pending                        |
| Denylist                  | Pass                                           |
| NVML Library              | Pass                                           |
|-----  Hardware  ----------+------------------------------------------------|
| GPU Memory                | Pass - All                                     |
+---------------------------+------------------------------------------------+
"""


def test_an_error_under_a_heading_is_of_no_test():
    """As in stas00/ml-engineering, compute/accelerator/nvidia/debug.md."""
    facts = dcgm_diag.parse({"dcgm-diag.txt": HEADED.encode()})
    assert facts["runtime_error"] == "GPU 3 has uncorrectable memory errors and row remappings are pending"
    assert set(facts["tests"].values()) == {"Pass"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\x01",
        b"hello",
        b"{}",
        b"[1, 2]",
        b'{"DCGM Diagnostic": 3}',
        b'{"DCGM Diagnostic": {' + b'"a": {' * 100000,
    ],
)
def test_anything_else(data):
    with pytest.raises(ParseError):
        dcgm_diag.parse({"dcgm-diag.json": data})


def test_an_error_before_an_empty_document_is_told():
    text = b'Error: Unable to run diagnostic on unsupported GPU 0.\n{"DCGM GPU Diagnostic": {"version": "4.2.3"}}\n'
    with pytest.raises(ParseError, match="unsupported GPU 0"):
        dcgm_diag.parse({"dcgm-diag.json": text})


def row(name, value):
    return f"| {name:<25} | {value:<46} |\n"


@pytest.mark.parametrize(
    ("value", "status", "gpus"),
    [
        ("FAIL - GPU 3: memory test failed", "Fail", [3]),
        ("Fail - GPUs 3, 5", "Fail", [3, 5]),
        ("FAILED (GPU 3)", "Fail", [3]),
        ("ERROR: no result", "Fail", [None]),
        ("WARN", "Warn", [None]),
        ("SKIPPED", "Skip", []),
        ("PASSED", "Pass", []),
    ],
)
def test_a_status_that_a_script_prints_again(value, status, gpus):
    text = "+-----+-----+\n" + row("Denylist", "Pass") + row("GPU Memory", value) + "+-----+-----+\n"
    facts = dcgm_diag.parse({"dcgm-diag.txt": text.encode()})
    assert facts["tests"] == {"Denylist": "Pass", "GPU Memory": status}
    assert [note.get("gpu") for note in (*facts["failures"], *facts["warnings"])] == gpus


def test_a_heading_ends_the_test_above_it():
    """DCGM prints later headings with a plus sign (dcgmi/Diag.cpp 3.x)."""
    text = "+-----+-----+\n" + row("Denylist", "Pass") + "+-----  Hardware  ----------+------+\n"
    text += row("Error", "GPU 1 had an uncontained error") + row("GPU Memory", "Pass - All") + "+-----+-----+\n"
    facts = dcgm_diag.parse({"dcgm-diag.txt": text.encode()})
    assert (facts["runtime_error"], facts["warnings"]) == ("GPU 1 had an uncontained error", [])


def test_an_error_is_all_that_the_table_holds():
    """What DCGM 2 and 3 print when a check of the deployment stops the tests."""
    text = "+-----+-----+\n|-----  Deployment  --------+------|\n"
    text += row("Error", "GPU 3 has uncorrectable memory errors and row  ") + row("", " remappings are pending")
    facts = dcgm_diag.parse({"dcgm-diag.json": (text + "+-----+-----+\n").encode()})
    assert (facts["tests"], facts["runtime_error"][:5]) == ({}, "GPU 3")


def test_how_many_gpus_the_output_names():
    old = {"name": "Denylist", "results": [{"gpu_ids": "0,1,2", "status": "PASS"}]}
    each = {"name": "PCIe", "results": [{"gpu_id": "3", "status": "Pass"}]}
    document = {"DCGM GPU Diagnostic": {"test_categories": [{"category": "x", "tests": [old, each]}]}}
    assert dcgm_diag.parse({"dcgm-diag.json": json.dumps(document).encode()})["gpus"] == 4
    ids = {**document, "GPU Device IDs": ["2330"] * 8}
    assert dcgm_diag.parse({"dcgm-diag.json": json.dumps(ids).encode()})["gpus"] == 8
    text = "+-----+-----+\n" + row("GPU Device IDs Detected", "2330,2330") + row("Denylist", "Pass") + "+-----+-----+\n"
    assert dcgm_diag.parse({"dcgm-diag.txt": text.encode()})["gpus"] == 2
    assert "gpus" not in dcgm_diag.parse({"dcgm-diag.txt": text.replace("Detected", "x").encode()})


def test_skipped_on_some_gpus_only():
    def results(*statuses):
        return [{"entity_group": "GPU", "entity_id": gpu, "status": status} for gpu, status in enumerate(statuses)]

    tests = [
        {"name": "memory", "results": results("Pass", "Skip", "Pass")},
        {"name": "eud", "results": results("Skip", "Skip", "Skip")},
        {"name": "pcie", "results": results("Fail", "Skip", "Not Run")},
    ]
    document = {"DCGM Diagnostic": {"test_categories": [{"category": "x", "tests": tests}]}}
    facts = dcgm_diag.parse({"dcgm-diag.json": json.dumps(document).encode()})
    assert facts["skipped_on"] == {"memory": [1], "pcie": [1]}


def test_a_document_on_one_line_is_read_whatever_stands_before_its_results():
    result = {"entity_group": "GPU", "entity_id": 3, "status": "Fail", "warnings": [{"error_id": 4, "warning": "x"}]}
    tests = [{"category": "Hardware", "tests": [{"name": "memory", "results": [result]}]}]
    text = json.dumps({"metadata": {"version": "4.6.0"}, "entity_groups": [{"entities": []}], "test_categories": tests})
    facts = dcgm_diag.parse({"dcgm-diag.json": text.encode()})
    assert (facts["tests"], facts["dcgm_version"]) == ({"memory": "Fail"}, "4.6.0")


@pytest.mark.parametrize("name", ["software", "memory", "pcie", "memtest", "pulse_test", "nvbandwidth", "eud"])
def test_each_entity_of_a_dcgm_4_test_has_its_result(name):
    """Runs of DCGM 4 go by name too (short, medium, long, memtest, pulse_test); the results are of one shape."""
    note = {"error_id": 14, "error_category": 5, "error_severity": 4, "warning": "GPU 1 NvLink 3 is currently down"}
    results = [
        {"entity_group": "GPU", "entity_id": 0, "status": "Pass"},
        {"entity_group": "GPU", "entity_id": 1, "status": "Fail", "warnings": [note]},
        {"entity_group": "CPU", "entity_id": 0, "status": "Skip"},
        {"entity_group": "GPU", "entity_id": 2, "status": "Fail"},
    ]
    test = {"name": name, "results": results, "test_summary": {"status": "Fail"}}
    text = json.dumps({"metadata": {"version": "4.5.0"}, "test_categories": [{"category": "x", "tests": [test]}]})
    facts = dcgm_diag.parse({"dcgm-diag.json": text.encode()})
    assert facts["tests"] == {name: "Fail"}
    assert [(note["gpu"], note.get("severity")) for note in facts["failures"]] == [(1, "TRIAGE"), (2, None)]
