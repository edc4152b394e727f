"""fabric_manager: running, failed, restarting, not installed, in a driver container, types without it."""

import pytest

from flightline_node.model import Remedy, Status
from tests.harness import judge_facts, only, status
from tests.unit.parsers.hosttools import read

UNIT = "nvidia-fabricmanager.service"


def unit(**state):
    return {"services": {"units": {UNIT: state}}}


@pytest.mark.parametrize(
    ("file", "wanted"),
    [("p5.json", "PASS"), ("p5-fabricmanager-failed.json", "FAIL"), ("table.txt", "FAIL"), ("show.txt", "FAIL")],
)
def test_fixtures(file, wanted):
    assert status(judge_facts("fabric_manager", {"services": read("services", f"systemctl/{file}")})) == wanted


@pytest.mark.parametrize(
    "state",
    [
        {"load": "loaded", "active": "inactive", "sub": "dead"},
        {"load": "loaded", "active": "active", "sub": "exited"},
        {"load": "masked", "active": "inactive", "sub": "dead"},
        {"load": "not-found", "active": "inactive", "sub": "dead"},
        {"load": "loaded", "active": "activating", "sub": "start"},
    ],
)
def test_everything_but_running_fails(state):
    assert status(judge_facts("fabric_manager", unit(**state))) is Status.FAIL


def test_failed_unit_is_evidence():
    finding = only(judge_facts("fabric_manager", unit(load="loaded", active="failed", sub="failed")), Status.FAIL)
    assert (finding.measured, finding.expected, finding.remedy) == (
        "failed/failed",
        "active/running",
        Remedy.FIX_CONFIG,
    )
    assert UNIT in finding.evidence[0]


def test_no_unit():
    none = {"services": {"units": {"sshd.service": {"active": "active"}}}}
    registered = {"nvidia_smi": {"gpus": [{"fabric_state": "Completed"}] * 8}}
    partly = {"nvidia_smi": {"gpus": [{"fabric_state": "Completed"}, {"fabric_state": "In Progress"}]}}
    assert status(judge_facts("fabric_manager", none)) is Status.FAIL
    assert status(judge_facts("fabric_manager", {**none, **partly})) is Status.FAIL
    assert status(judge_facts("fabric_manager", {**none, **registered})) is Status.INFO


@pytest.mark.parametrize("kind", ["g5.48xlarge", "p5.4xlarge", "p6e-gb200.36xlarge", "none"])
def test_types_without_it(kind):
    assert status(judge_facts("fabric_manager", unit(active="failed"), kind)) is Status.SKIP


def test_blackwell_needs_it():
    assert status(judge_facts("fabric_manager", unit(active="failed"), "p6-b200.48xlarge")) is Status.FAIL


def test_unknown():
    assert status(judge_facts("fabric_manager", unit(load="loaded"))) is Status.UNKNOWN


def test_nvlsm_needs_ib_umad_on_p6():
    running = unit(load="loaded", active="active", sub="running")
    without = {**running, "modules": {"names": {"nvidia": {}}}}
    assert "ib_umad" in only(judge_facts("fabric_manager", without, "p6-b200.48xlarge"), Status.WARN).message
    assert status(judge_facts("fabric_manager", without)) is Status.PASS
    loaded = {**running, "modules": {"names": {"ib_umad": {}}}}
    assert status(judge_facts("fabric_manager", loaded, "p6-b200.48xlarge")) is Status.PASS
    registered = {**without, "nvidia_smi": {"gpus": [{"fabric_state": "Completed"}]}}
    assert status(judge_facts("fabric_manager", registered, "p6-b200.48xlarge")) is Status.PASS


@pytest.mark.parametrize(("sub", "remedy"), [("start", Remedy.INVESTIGATE), ("auto-restart", Remedy.FIX_CONFIG)])
def test_still_starting_is_not_failing_again_and_again(sub, remedy):
    finding = only(judge_facts("fabric_manager", unit(load="loaded", active="activating", sub=sub)), Status.FAIL)
    assert finding.remedy is remedy


@pytest.mark.parametrize(
    ("configured", "registered", "wanted"),
    [(False, "In Progress", Status.FAIL), (False, "Completed", Status.WARN), (True, "In Progress", Status.WARN)],
)
def test_a_daemon_that_runs_and_logged_errors(configured, registered, wanted):
    log = {"errors": ["failed to configure the NVSwitch at 0000:05:00.0"], "configured": configured}
    facts = {
        **unit(load="loaded", active="active", sub="running"),
        "fabric_log": {"logs": {"fabricmanager.log": log}},
        "nvidia_smi": {"gpus": [{"fabric_state": registered}] * 8},
    }
    finding = only(judge_facts("fabric_manager", facts), wanted)
    assert "0000:05:00.0" in finding.message and finding.evidence == (f"fabricmanager.log: {log['errors'][0]}",)
