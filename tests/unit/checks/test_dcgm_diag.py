"""dcgm_diag: failures by severity and GPU, skips, runtime errors, all from whole outputs where there is one."""

import json

import pytest

from flightline_node.model import Remedy
from flightline_node.read.parsers import dcgm_diag
from tests.harness import only, sample, status

from .table import FAIL, PASS, SKIP, UNKNOWN, WARN, judging, row, table

HEALTHY = {"tests": {"software": "Pass", "memory": "Pass"}, "failures": [], "warnings": [], "dcgm_version": "4.2.3"}


def fixture(name):
    return dcgm_diag.parse({"dcgm-diag.json": sample(f"dcgm_diag/{name}")})


def judge(facts, instance_type="p5.48xlarge", **smi):
    return judging("dcgm_diag", {"dcgm_diag": facts, **smi}, instance_type)


def failed(error_id, severity="", **more):
    note = {"test": "memory", "gpu": 3, "error_id": error_id, "message": "x", **more}
    return {**HEALTHY, "tests": {"memory": "Fail"}, "failures": [{**note, "severity": severity} if severity else note]}


WIDTH = "GPU 3 is running at PCI link width {}X, which is below the minimum allowed link generation of 16"
SMI = {"gpus": [{"index": 0, "uuid": "GPU-a", "serial": "77"}, {"index": 3, "uuid": "GPU-d", "serial": "99"}]}
TESTS = {"Denylist": "Pass", "NVML Library": "Pass", "PCIe": "Skip", "GPU Memory": "Skip"}
ERROR = "GPU 3 has uncorrectable memory errors and row remappings are pending"


test_dcgm_diag = table(
    *(row("remedy by severity and override", judge(failed(error_id, severity)), FAIL, remedy=remedy)
        for error_id, severity, remedy in [
            (52, "ISOLATE", Remedy.REPLACE), (85, "RESET", Remedy.RESET_GPU), (46, "CONFIG", Remedy.FIX_CONFIG),
            (63, "TRIAGE", Remedy.INVESTIGATE), (17, "MONITOR", Remedy.INVESTIGATE), (80, "RESET", Remedy.REPLACE),
            (126, "ISOLATE", Remedy.REBOOT), (24, "ISOLATE", Remedy.UPDATE_SOFTWARE), (52, "", Remedy.REPLACE),
            (9999, "RESET", Remedy.RESET_GPU), (9999, "", Remedy.INVESTIGATE),
        ]),
    row("persistence mode is judged as by the check of that name", judge(failed(29, "CONFIG")), WARN),
    row("persistence mode is judged as by the check of that name",
        judging("dcgm_diag", {"dcgm_diag": failed(29, "CONFIG")}, expected={"persistence_mode": "Enabled"}), FAIL),
    row("device from nvidia-smi by serial then by index", judge(failed(52), nvidia_smi=SMI), FAIL,
        of={"uuid": "GPU-d"}),
    row("device from nvidia-smi by serial then by index", judge({**failed(52), "serials": {"3": "77"}}, nvidia_smi=SMI),
        FAIL, of={"uuid": "GPU-a"}, index=3),
    row("monitor warning of a passed test does not block",
        judge({**HEALTHY, "warnings": [{"test": "memory", "gpu": 0, "error_id": 10, "severity": "MONITOR",
        "message": "hot"}]}), WARN, device={"index": 0}),
    *(row("the reason says what failed", judge({**HEALTHY, "tests": {name: "Fail"}}), FAIL, reason=reason)
        for name, reason in [("GPU Memory", "failed.memory"), ("PCIe", "failed.other")]),
    row("IMEX is noise but on p6e", judge(failed(122, "ISOLATE")), WARN),
    row("IMEX is noise but on p6e", judge(failed(122, "ISOLATE"), "p6e-gb200.36xlarge"), FAIL),
    *(row("statuses without messages", judge({**HEALTHY, "tests": tests}), wanted)
        for tests, wanted in [
            ({"memory": "Skip"}, UNKNOWN), ({"memory": "Not Run", "pcie": "Skip"}, UNKNOWN), ({}, UNKNOWN),
            ({"memory": "Perhaps"}, UNKNOWN), ({"memory": "Perhaps", "pcie": "Pass"}, UNKNOWN),
            ({"memory": "Warn", "pcie": "Pass"}, WARN), ({"memory": "Not Run", "pcie": "Pass"}, WARN),
            ({"memory": "Skip", "pcie": "Pass"}, PASS), ({"memory": "Fail", "pcie": "Pass"}, FAIL),
        ]),
    *(row("nothing measured is unknown", judge(fixture(name)), UNKNOWN)
        for name in ["4x-all-skip.json", "runtime-error.json"]),
    row("unreadable not collected and other accelerators", judge(failed(52), "trn1.32xlarge"), SKIP),
    *(each
        for message, remedy in [
            ("GPU 3 had uncorrectable memory errors and row remapping failed.", Remedy.REPLACE),
            ("GPU 3 had memory errors and row remappings are pending", Remedy.RESET_GPU),
            ("Bandwidth of GPU 3 in direction d2h of 1.0 did not exceed minimum required bandwidth of 3.0",
                Remedy.INVESTIGATE),
            ("Something new", Remedy.INVESTIGATE),
        ]
        for each in (
        row("the remedy by the message where no id is printed", judge(failed(None, message=message)), FAIL,
            remedy=remedy),
        row("the remedy by the message where no id is printed", judge(failed(52, message=message)), FAIL,
            remedy=Remedy.REPLACE),
    )),
    row("nothing but the set up was tested", judge({**HEALTHY, "tests": TESTS}), WARN, says="PCIe, GPU Memory"),
    row("nothing but the set up was tested",
        [judge({**HEALTHY, "tests": {**TESTS, "PCIe": "Pass"}}), judge({**HEALTHY, "tests": {"software": "Pass"}})],
        PASS),
    *(row("a GPU found bad before the tests", judge(facts), FAIL, index=3, remedy=Remedy.RESET_GPU)
        for facts in ({**HEALTHY, "runtime_error": ERROR},
        {"tests": {}, "failures": [], "warnings": [], "runtime_error": ERROR})),
    *(row("a CUDA error in the message decides", judge(failed(51, "MONITOR", message=message)), FAIL, remedy=remedy)
        for message, remedy in [
            ("Error using CUDA API cuInit. Unable to initialize CUDA library: 'system not yet initialized'",
                Remedy.FIX_CONFIG),
            ("'system has unsupported display driver / cuda driver combination' for GPU 0", Remedy.UPDATE_SOFTWARE),
            ("There was an internal error during the test", Remedy.INVESTIGATE),
        ]),
    row("the message names the error and its severity where known", judge(failed(52, "ISOLATE")), FAIL,
        message="DCGM test failed: memory: x (FAULTY_MEMORY, ISOLATE)"),
    row("the message names the error and its severity where known", judge(failed(None, message="hot")), FAIL,
        message="DCGM test failed: memory: hot"),
    row("the message names the error and its severity where known", judge(failed(None, message="")), FAIL,
        message="DCGM test failed: memory: no message"),
    row("a run without any work is one unknown that lists it",
        judge({**HEALTHY, "tests": {"memory": "Skip", "pcie": "Skip"}}), UNKNOWN, alone=True,
        message="DCGM ran no test: memory Skip, pcie Skip"),
    # without "gpus" the output names none
    row("a GPU that was not tested", judge({**HEALTHY, "gpus": 7}), UNKNOWN, measured=7, expected=8),
    row("a GPU that was not tested",
        [judge({**HEALTHY, "gpus": 8}), judge(HEALTHY), judge({**HEALTHY, "gpus": 1}, "g5.xlarge")], PASS),
    row("a test skipped on one GPU alone",
        judge({**HEALTHY, "tests": {"software": "Pass", "memory": "Skip"}, "skipped_on": {"memory": [4]}}), WARN,
        device={"index": 4}, remedy=Remedy.INVESTIGATE, says="memory on GPU 4 alone"),
)  # fmt: skip


def test_all_pass():
    finding = only(judge(fixture("3x-pass.json")), PASS)
    assert "GPU Memory" in finding.message
    assert "skipped: Pulse Test" in finding.message
    assert len(judge(fixture("3x-pass.json"))) == 1


def test_each_bad_gpu_has_its_finding():
    findings = [finding for finding in judge(fixture("3x-fail-new-severity.json")) if finding.status is FAIL]
    by_gpu = {finding.device["index"]: finding for finding in findings}
    assert by_gpu[2].remedy is Remedy.REPLACE
    assert by_gpu[2].device["serial"] == "1653023000002"
    assert len(findings) == 1
    warned = [f for f in judge(fixture("3x-fail-new-severity.json")) if f.status is WARN and f.device]
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
    finding = only(judge(fixture(name)), FAIL)
    assert (finding.device["index"], finding.remedy) == (gpu, remedy)
    assert finding.evidence


def test_worst_remedy_of_a_gpu_wins():
    facts = failed(23, "CONFIG")
    facts["failures"].append({"test": "pcie", "gpu": 3, "error_id": 52, "message": "y", "severity": "ISOLATE"})
    finding = only(judge(facts), FAIL)
    assert finding.remedy is Remedy.REPLACE
    assert finding.measured == "memory, pcie"


def test_a_failed_summary_over_passed_gpus_still_fails():
    result = {"entity_group": "GPU", "entity_id": 0, "status": "Pass", "warnings": [{"warning": "hot", "error_id": 10}]}
    test = {"name": "memory", "results": [result], "test_summary": {"status": "Fail"}}
    document = {"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [test]}]}}
    facts = dcgm_diag.parse({"dcgm-diag.json": json.dumps(document).encode()})
    assert facts["failures"] == [{"test": "memory"}]
    assert only(judge(facts), FAIL).measured == "memory"
    assert status(judge({**facts, "failures": []})) is FAIL


@pytest.mark.parametrize(
    ("lanes", "instance_type", "wanted"),
    [
        (8, "g6.12xlarge", WARN),
        (4, "g6.12xlarge", FAIL),
        (8, "p5.48xlarge", FAIL),
        (16, "p5.48xlarge", FAIL),
        (8, "none", FAIL),
    ],
)
def test_fewer_lanes_than_dcgm_wants_are_normal_where_aws_connects_fewer(lanes, instance_type, wanted):
    for error_id in (46, None):
        facts = failed(error_id, message=WIDTH.format(lanes))
        assert status(judge(facts, instance_type)) is wanted
    facts["failures"].append({"test": "pcie", "gpu": 3, "error_id": 30, "message": "slow"})
    assert status(judge(facts, instance_type)) is FAIL


def test_what_a_cut_table_shows_fails_and_the_rest_is_unknown():
    findings = judge({**failed(52), "cut": True})
    assert {finding.status for finding in findings} == {FAIL, UNKNOWN}
