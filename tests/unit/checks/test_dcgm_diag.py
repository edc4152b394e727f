"""dcgm_diag: failures by severity and GPU, skips, runtime errors, all from whole outputs where there is one."""

import json

import pytest

from flightline_node.model import Remedy, Status
from flightline_node.read.parsers import dcgm_diag
from tests.harness import judge_facts, only, sample, status

HEALTHY = {"tests": {"software": "Pass", "memory": "Pass"}, "failures": [], "warnings": [], "dcgm_version": "4.2.3"}


def fixture(name):
    return dcgm_diag.parse({"dcgm-diag.json": sample(f"dcgm_diag/{name}")})


def judge(facts, instance_type="p5.48xlarge", **smi):
    return judge_facts("dcgm_diag", {"dcgm_diag": facts, **smi}, instance_type)


def failed(error_id, severity="", **more):
    note = {"test": "memory", "gpu": 3, "error_id": error_id, "message": "x", **more}
    return {**HEALTHY, "tests": {"memory": "Fail"}, "failures": [{**note, "severity": severity} if severity else note]}


def test_all_pass():
    finding = only(judge(fixture("3x-pass.json")), Status.PASS)
    assert "GPU Memory" in finding.message
    assert "skipped: Pulse Test" in finding.message
    assert len(judge(fixture("3x-pass.json"))) == 1


def test_each_bad_gpu_has_its_finding():
    findings = [finding for finding in judge(fixture("3x-fail-new-severity.json")) if finding.status is Status.FAIL]
    by_gpu = {finding.device["index"]: finding for finding in findings}
    assert by_gpu[2].remedy is Remedy.REPLACE
    assert by_gpu[2].device["serial"] == "1653023000002"
    assert len(findings) == 1
    warned = [f for f in judge(fixture("3x-fail-new-severity.json")) if f.status is Status.WARN and f.device]
    assert {(f.device["index"], f.remedy) for f in warned} >= {(7, Remedy.FIX_CONFIG)}  # persistence mode is off


@pytest.mark.parametrize(
    ("name", "gpu", "remedy"),
    [
        ("2x-memory-fail.json", 5, Remedy.REPLACE),
        ("3x-fail-old-severity.json", 1, Remedy.REPLACE),
        ("4x-nvlink-fail.json", 3, Remedy.INVESTIGATE),
        ("3x-table-fail.txt", 6, Remedy.REPLACE),
        ("4x-table-fail.txt", 1, Remedy.INVESTIGATE),
    ],
)
def test_every_shape_fails_on_its_gpu(name, gpu, remedy):
    finding = only(judge(fixture(name)), Status.FAIL)
    assert (finding.device["index"], finding.remedy) == (gpu, remedy)
    assert finding.evidence


@pytest.mark.parametrize(
    ("error_id", "severity", "remedy"),
    [
        (52, "ISOLATE", Remedy.REPLACE),
        (85, "RESET", Remedy.RESET_GPU),
        (46, "CONFIG", Remedy.FIX_CONFIG),
        (63, "TRIAGE", Remedy.INVESTIGATE),
        (17, "MONITOR", Remedy.INVESTIGATE),
        (80, "RESET", Remedy.REPLACE),
        (126, "ISOLATE", Remedy.REBOOT),
        (24, "ISOLATE", Remedy.UPDATE_SOFTWARE),
        (52, "", Remedy.REPLACE),
        (9999, "RESET", Remedy.RESET_GPU),
        (9999, "", Remedy.INVESTIGATE),
    ],
)
def test_remedy_by_severity_and_override(error_id, severity, remedy):
    assert only(judge(failed(error_id, severity)), Status.FAIL).remedy is remedy


def test_worst_remedy_of_a_gpu_wins():
    facts = failed(23, "CONFIG")
    facts["failures"].append({"test": "pcie", "gpu": 3, "error_id": 52, "message": "y", "severity": "ISOLATE"})
    finding = only(judge(facts), Status.FAIL)
    assert finding.remedy is Remedy.REPLACE
    assert finding.measured == "memory, pcie"


def test_persistence_mode_is_judged_as_by_the_check_of_that_name():
    facts = failed(29, "CONFIG")
    assert status(judge(facts)) is Status.WARN
    wanted = {"persistence_mode": "Enabled"}
    assert status(judge_facts("dcgm_diag", {"dcgm_diag": facts}, expected=wanted)) is Status.FAIL


def test_device_from_nvidia_smi_by_serial_then_by_index():
    smi = {"gpus": [{"index": 0, "uuid": "GPU-a", "serial": "77"}, {"index": 3, "uuid": "GPU-d", "serial": "99"}]}
    by_index = only(judge(failed(52), nvidia_smi=smi), Status.FAIL)
    by_serial = only(judge({**failed(52), "serials": {"3": "77"}}, nvidia_smi=smi), Status.FAIL)
    assert by_index.device["uuid"] == "GPU-d"
    assert (by_serial.device["uuid"], by_serial.device["index"]) == ("GPU-a", 3)


def test_monitor_warning_of_a_passed_test_does_not_block():
    facts = {
        **HEALTHY,
        "warnings": [{"test": "memory", "gpu": 0, "error_id": 10, "severity": "MONITOR", "message": "hot"}],
    }
    findings = judge(facts)
    assert status(findings) is Status.WARN
    assert only(findings, Status.WARN).device == {"index": 0}


def test_imex_is_noise_but_on_p6e():
    assert status(judge(failed(122, "ISOLATE"))) is Status.WARN
    assert status(judge(failed(122, "ISOLATE"), "p6e-gb200.36xlarge")) is Status.FAIL


@pytest.mark.parametrize(
    ("tests", "wanted"),
    [
        ({"memory": "Skip"}, Status.UNKNOWN),
        ({"memory": "Not Run", "pcie": "Skip"}, Status.UNKNOWN),
        ({}, Status.UNKNOWN),
        ({"memory": "Perhaps"}, Status.UNKNOWN),
        ({"memory": "Perhaps", "pcie": "Pass"}, Status.UNKNOWN),
        ({"memory": "Warn", "pcie": "Pass"}, Status.WARN),
        ({"memory": "Not Run", "pcie": "Pass"}, Status.WARN),
        ({"memory": "Skip", "pcie": "Pass"}, Status.PASS),
        ({"memory": "Fail", "pcie": "Pass"}, Status.FAIL),
    ],
)
def test_statuses_without_messages(tests, wanted):
    assert status(judge({**HEALTHY, "tests": tests})) is wanted


@pytest.mark.parametrize("name", ["4x-all-skip.json", "runtime-error.json"])
def test_nothing_measured_is_unknown(name):
    assert status(judge(fixture(name))) is Status.UNKNOWN


def test_unreadable_not_collected_and_other_accelerators():
    assert status(judge(failed(52), "trn1.32xlarge")) is Status.SKIP


def test_a_failed_summary_over_passed_gpus_still_fails():
    result = {"entity_group": "GPU", "entity_id": 0, "status": "Pass", "warnings": [{"warning": "hot", "error_id": 10}]}
    test = {"name": "memory", "results": [result], "test_summary": {"status": "Fail"}}
    document = {"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [test]}]}}
    facts = dcgm_diag.parse({"dcgm-diag.json": json.dumps(document).encode()})
    assert facts["failures"] == [{"test": "memory"}]
    assert only(judge(facts), Status.FAIL).measured == "memory"
    assert status(judge({**facts, "failures": []})) is Status.FAIL


WIDTH = "GPU 3 is running at PCI link width {}X, which is below the minimum allowed link generation of 16"


@pytest.mark.parametrize(
    ("lanes", "instance_type", "wanted"),
    [
        (8, "g6.12xlarge", Status.WARN),
        (4, "g6.12xlarge", Status.FAIL),
        (8, "p5.48xlarge", Status.FAIL),
        (16, "p5.48xlarge", Status.FAIL),
        (8, "none", Status.FAIL),
    ],
)
def test_fewer_lanes_than_dcgm_wants_are_normal_where_aws_connects_fewer(lanes, instance_type, wanted):
    for error_id in (46, None):
        facts = failed(error_id, message=WIDTH.format(lanes))
        assert status(judge(facts, instance_type)) is wanted
    facts["failures"].append({"test": "pcie", "gpu": 3, "error_id": 30, "message": "slow"})
    assert status(judge(facts, instance_type)) is Status.FAIL


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        ("GPU 3 had uncorrectable memory errors and row remapping failed.", Remedy.REPLACE),
        ("GPU 3 had memory errors and row remappings are pending", Remedy.RESET_GPU),
        (
            "Bandwidth of GPU 3 in direction d2h of 1.0 did not exceed minimum required bandwidth of 3.0",
            Remedy.INVESTIGATE,
        ),
        ("Something new", Remedy.INVESTIGATE),
    ],
)
def test_the_remedy_by_the_message_where_no_id_is_printed(message, remedy):
    assert only(judge(failed(None, message=message)), Status.FAIL).remedy is remedy
    assert only(judge(failed(52, message=message)), Status.FAIL).remedy is Remedy.REPLACE


def test_nothing_but_the_set_up_was_tested():
    tests = {"Denylist": "Pass", "NVML Library": "Pass", "PCIe": "Skip", "GPU Memory": "Skip"}
    finding = only(judge({**HEALTHY, "tests": tests}), Status.WARN)
    assert "PCIe, GPU Memory" in finding.message
    assert status(judge({**HEALTHY, "tests": {**tests, "PCIe": "Pass"}})) is Status.PASS
    assert status(judge({**HEALTHY, "tests": {"software": "Pass"}})) is Status.PASS


def test_a_gpu_found_bad_before_the_tests():
    error = "GPU 3 has uncorrectable memory errors and row remappings are pending"
    for facts in (
        {**HEALTHY, "runtime_error": error},
        {"tests": {}, "failures": [], "warnings": [], "runtime_error": error},
    ):
        finding = only(judge(facts), Status.FAIL)
        assert (finding.device["index"], finding.remedy) == (3, Remedy.RESET_GPU)


def test_what_a_cut_table_shows_fails_and_the_rest_is_unknown():
    findings = judge({**failed(52), "cut": True})
    assert {finding.status for finding in findings} == {Status.FAIL, Status.UNKNOWN}


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        (
            "Error using CUDA API cuInit. Unable to initialize CUDA library: 'system not yet initialized'",
            Remedy.FIX_CONFIG,
        ),
        ("'system has unsupported display driver / cuda driver combination' for GPU 0", Remedy.UPDATE_SOFTWARE),
        ("There was an internal error during the test", Remedy.INVESTIGATE),
    ],
)
def test_a_cuda_error_in_the_message_decides(message, remedy):
    assert only(judge(failed(51, "MONITOR", message=message)), Status.FAIL).remedy is remedy


def test_the_message_names_the_error_and_its_severity_where_known():
    assert only(judge(failed(52, "ISOLATE")), Status.FAIL).message == (
        "DCGM test failed: memory: x (FAULTY_MEMORY, ISOLATE)"
    )
    assert only(judge(failed(None, message="hot")), Status.FAIL).message == "DCGM test failed: memory: hot"
    assert only(judge(failed(None, message="")), Status.FAIL).message == "DCGM test failed: memory: no message"


def test_a_run_without_any_work_is_one_unknown_that_lists_it():
    (finding,) = judge({**HEALTHY, "tests": {"memory": "Skip", "pcie": "Skip"}})
    assert (finding.status, finding.message) == (Status.UNKNOWN, "DCGM ran no test: memory Skip, pcie Skip")


def test_a_gpu_that_was_not_tested():
    finding = only(judge({**HEALTHY, "gpus": 7}), Status.UNKNOWN)
    assert (finding.measured, finding.expected) == (7, 8)
    assert status(judge({**HEALTHY, "gpus": 8})) is Status.PASS
    assert status(judge(HEALTHY)) is Status.PASS  # the output names none
    assert status(judge({**HEALTHY, "gpus": 1}, "g5.xlarge")) is Status.PASS


def test_a_test_skipped_on_one_gpu_alone():
    facts = {**HEALTHY, "tests": {"software": "Pass", "memory": "Skip"}, "skipped_on": {"memory": [4]}}
    finding = only(judge(facts), Status.WARN)
    assert (finding.device, finding.remedy) == ({"index": 4}, Remedy.INVESTIGATE)
    assert "memory on GPU 4 alone" in finding.message
