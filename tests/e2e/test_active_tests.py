"""Active tests on simulated nodes: both levels go when healthy, none starts on a node in use, and judging again agrees.

Tools and our own programs answer from stored outputs; nothing is loaded or written.
"""

from datetime import datetime, timezone

import pytest

from flightline_node import settings
from flightline_node.ask.probes import plan
from flightline_node.judge import judgement as judge
from flightline_node.judge.checks import CHECKS
from flightline_node.know.expected import resolve
from flightline_node.read import bundle
from tests.beds import simulated, statuses

# What a node with NVIDIA GPUs is asked; neuron checks skip there.
ACTIVE = {check.id for check in CHECKS.values() if check.level != "quick" and "neuron" not in check.tags}
TYPE = "p4d.24xlarge"


@pytest.fixture
def run(tmp_path):
    """Collect and judge a simulated node, keeping its bundle; returns the record."""

    def start(*faults, level="standard", **options):
        return simulated(tmp_path / "node", TYPE, faults, level, bundle=tmp_path / "bundle", options=options)

    return start


@pytest.mark.parametrize("level", ["standard", "deep"])
def test_a_healthy_node_passes_every_active_test_of_its_level(run, level):
    record = run(level=level)
    assert record["verdict"] == "go"
    wanted = {check.id for check in CHECKS.values() if check.level == "standard" or check.level == level}
    passed = {check for check, seen in statuses(record).items() if "PASS" in seen}
    # No network is used on one node, and without a floor of the site fio only informs.
    assert wanted & ACTIVE - {"nccl_transport", "fio_disk"} <= passed
    assert all(
        probe["rc"] == 0 for probe in record["probes"] if probe["id"] in {p.id for p in plan(level) if p.exclusive}
    )


def test_none_starts_on_a_node_in_use_and_each_says_why(run):
    record = run("gpu_in_use", level="deep")
    refused = {probe["id"]: probe["note"] for probe in record["probes"] if probe["rc"] is None}
    assert set(refused) == {probe.id for probe in plan("deep") if probe.exclusive}
    assert all("pid 4711 python3" in note for note in refused.values())
    found = statuses(record)
    assert {check: found[check] for check in ACTIVE} == {check: {"UNKNOWN"} for check in ACTIVE}
    assert record["verdict"] == "no-go"


def test_the_override_runs_them_and_the_process_is_still_a_fault(run):
    record = run("gpu_in_use", active_when_busy=True)
    found = statuses(record)
    assert found["dcgm_diag"] == found["gpu_compute"] == {"PASS"}
    assert "FAIL" in found["gpu_processes"]


def test_quick_runs_none(run):
    assert not {probe["id"] for probe in run("gpu_in_use", level="quick")["probes"]} & {
        probe.id for probe in plan("deep") if probe.exclusive
    }


@pytest.mark.parametrize("faults", [("gpu_in_use",), ("gpu_miscalculates", "efa_silent", "scratch_full")])
def test_judging_the_bundle_again_gives_the_same(run, tmp_path, faults):
    record = run(*faults)
    again = judge.judge(
        bundle.load(tmp_path / "bundle"),
        resolve(TYPE),
        settings.build(level="standard"),
        datetime.now(timezone.utc),
        required=False,
    )
    mine = {(f["check"], f["status"], f["message"]) for f in record["findings"] if f["check"] in ACTIVE}
    theirs = {(f.check, str(f.status), f.message) for f in again.findings if f.check in ACTIVE}
    assert mine == {finding for finding in theirs if CHECKS[finding[0]].level == "standard"}
