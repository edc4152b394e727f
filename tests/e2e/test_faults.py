"""Every fault of the demo fleet, injected alone into a simulated node: real probes, real processes, real judgement.

Faults that change the same stored outputs take the same way from the tool to the judge: the first of them is asked by real
processes, the others' outputs are judged as they are stored. So are healthy nodes: one type of each generation is asked.

The tools are simulated, so this proves the way from a tool's output to the verdict, not that a real fault is
recognised.
"""

import dataclasses
import re

import pytest

from flightline.demo import FAULTS
from flightline.demo.faults import FLEET, NODE, broken
from flightline.demo.hardware import machine
from flightline.demo.tree import healthy
from flightline.fleet import causes
from flightline.fleet.judgement import judge_run
from flightline.store.sqlite import ExpectedHost, Run, SqliteStore
from flightline_node import node, settings
from flightline_node.ask import probes
from flightline_node.judge.checks import CHECKS
from flightline_node.judge.judgement import judge
from flightline_node.know.expected import known_types, resolve
from flightline_node.model import LEVELS, UNSAID, SettingsError, Status, Verdict
from flightline_node.read import bundle
from tests.beds import processes, simulated, statuses
from tests.corpus.material import demo
from tests.harness import NOW

BAD = {str(Status.FAIL), str(Status.UNKNOWN)}


def simulated_types():
    found = []
    for name in known_types():
        try:
            machine(name)
        except SettingsError:
            continue
        found.append(name)
    return found


def kinds():
    """Every Neuron type, and of the others one of each generation and architecture: the corpus judges the rest of them."""
    found = {}
    for name in simulated_types():
        facts = resolve(name)
        kind = (facts.gpu_generation, facts.arch, facts.nvswitch, name.endswith(".metal"))
        found.setdefault((name,) if facts.has_neuron else kind, name)
    return list(found.values())


def first_of_their_way():
    """Faults that real processes must show: a tool or the asking that goes otherwise, the first that changes these outputs."""
    ways, real = set(), set()
    for name, fault in FAULTS.items():
        if fault.scope != NODE:
            continue
        before, after = healthy(fault.type), broken(machine(fault.type), [name])
        changed = {path for path in {*before, *after} if before.get(path) != after.get(path)}
        stored = all(
            isinstance(files.get(path), bytes) and files[path] for files in (before, after) for path in changed
        )
        if not stored or fault.status is Status.UNKNOWN or frozenset(changed) not in ways:
            real.add(name)
        ways.add(frozenset(changed))
    return real


@pytest.fixture(scope="session")
def park(tmp_path_factory):
    """Where the nodes stand: side by side, so that they share what healthy ones print."""
    return tmp_path_factory.mktemp("park")


@pytest.fixture
def judged(park, request):
    """Collect and judge a simulated node as the Ansible module does; returns its record."""

    def run(instance_type, *faults, level="quick"):
        return simulated(park / re.sub(r"\W+", "-", request.node.name), instance_type, faults, level)

    return run


def as_stored(fault, directory):
    """A record, as far as these tests read it, of what a node with the fault has stored."""
    for file, content in demo(fault.type, fault.name):
        (directory / file).write_bytes(content)
    wanted = settings.build(level=fault.level)
    found = judge(bundle.load(directory), resolve(fault.type), wanted, NOW, required=False)
    return {"verdict": found.verdict, "findings": [finding.to_dict() for finding in found.findings]}


def blind(fault):
    """Checks that cannot do without what the fault spoils, and those that would only like to have it."""
    spoiled = set(fault.blinds)
    needing = {check.id for check in CHECKS.values() if spoiled & set(check.needs)}
    wanting = {check.id for check in CHECKS.values() if spoiled & {*check.needs_any, *check.wants}}
    return needing, wanting


@pytest.mark.parametrize("instance_type", kinds())
def test_a_healthy_node_of_every_kind_is_go(judged, instance_type):
    record = judged(instance_type)
    trouble = [finding for finding in record["findings"] if finding["status"] not in ("PASS", "SKIP", "INFO")]
    assert trouble == []
    assert record["verdict"] == str(Verdict.GO)
    assert "PASS" in statuses(record)["neuron_devices" if resolve(instance_type).has_neuron else "gpu_count"]


def healthy_in_depth(judged, instance_type):
    """The record at level deep, in which nothing is wrong."""
    record = judged(instance_type, level="deep")
    assert [finding for finding in record["findings"] if finding["status"] not in ("PASS", "SKIP", "INFO")] == []
    assert record["verdict"] == str(Verdict.GO)
    return record


@pytest.mark.parametrize(
    "instance_type", ["p5.48xlarge", "p6-b200.48xlarge", "p4d.24xlarge", "g5.48xlarge", "g6.xlarge"]
)
def test_a_healthy_node_passes_the_active_tests(judged, instance_type):
    record = healthy_in_depth(judged, instance_type)
    assert statuses(record)["dcgm_diag"] == {"PASS"}
    assert "PASS" in statuses(record)["nccl_correctness"]


@pytest.mark.parametrize("instance_type", ["trn1.32xlarge", "trn1.2xlarge", "trn2.48xlarge", "inf2.24xlarge"])
def test_a_healthy_neuron_node_passes_the_active_tests(judged, instance_type):
    record = healthy_in_depth(judged, instance_type)
    found = statuses(record)
    assert (found["nccom_test"], found["nccom_busbw"]) == ({"PASS"}, {"PASS"})
    asked = {probe["id"] for probe in record["probes"]}
    assert "neuron-ls" in asked
    assert not {name for name in asked if name.startswith(("nvidia", "nvlink", "dcgm", "nccl", "gpu"))}


def test_no_neuron_probe_runs_on_a_gpu_node(judged):
    record = judged("p5.48xlarge")
    assert not {probe["id"] for probe in record["probes"] if "neuron" in probe["id"] or "nccom" in probe["id"]}
    skipped = {item["message"] for item in record["findings"] if item["check"].startswith(("neuron", "nccom"))}
    assert skipped <= {"no Neuron device in p5.48xlarge"}


REAL = first_of_their_way()
TOLD = {"FAIL": "", "UNKNOWN": ", not measured", "WARN": ", a warning", "INFO": ", a note"}
HUNG = {"tool_hung": "nvidia-smi", "neuron_ls_hung": "neuron-ls"}
ROOTS = {
    "gpu_fallen_off_bus": ("gpu_lost", "gpu_off_bus"),
    "gpu_missing": ("gpu_lost", "gpu_off_bus"),
    "driver_not_loaded": ("gpu_lost", "driver_not_loaded"),
    "driver_not_rebooted": ("gpu_lost", "driver_mismatch"),
    "tool_hung": ("gpu_count", "smi_silent"),
    "tool_garbage": ("gpu_count", "not_measured"),
    "kernel_log_denied": ("gpu_lost", "not_measured"),
    "efa_missing": ("pci_devices", "efa_lost"),
    "efa_no_provider": ("efa_provider", "efa_endpoint"),
    "remap_pending": ("row_remap", "gpu_memory"),
    "fabric_manager_dead": ("fabric_manager", "fabric_manager"),
    "disk_full": ("disk_space", ""),
}
"""Faults that several checks see, as one trouble: the check that shows its root, and the cause that the others are told by."""


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.scope == NODE])
def test_a_fault_is_found_with_its_remedy_and_nothing_else(judged, monkeypatch, tmp_path, name):
    fault = FAULTS[name]
    if name in HUNG:  # costs its whole deadline; one second shows the same as eight
        kind = resolve(fault.type).accelerator or ""
        # Its own probes alone: the others' tools answer, and have their whole time for it on a busy machine.
        short = tuple(
            dataclasses.replace(probe, deadline_s=1.0) if HUNG[name] in str(probe.commands) else probe
            for probe in probes.plan(fault.level, kind)
        )
        monkeypatch.setattr(node, "plan", lambda *_: short)

    record = judged(fault.type, name, level=fault.level) if name in REAL else as_stored(fault, tmp_path)

    mine = [{**UNSAID, **finding} for finding in record["findings"] if finding["check"] == fault.check]
    assert (str(fault.status), str(fault.remedy)) in {(finding["status"], finding["remedy"]) for finding in mine}, mine
    assert record["verdict"] == str(Verdict.NO_GO if fault.blocks else Verdict.GO)
    assert fault.comes_to.startswith(f"{record['verdict']}{TOLD[str(fault.status)]}: {fault.check}"), fault.comes_to
    found, (needing, wanting) = statuses(record), blind(fault)
    others = {check for check, seen in found.items() if seen & BAD} - {fault.check, *fault.also, *needing, *wanting}
    assert others == set(), [finding for finding in record["findings"] if finding["check"] in others]
    # What rests on a spoiled output is never evidence.
    assert {check for check in needing & set(found) if "PASS" in found[check]} == set()
    if name in ROOTS:
        assert [(one.root["check"], one.cause) for one in causes.troubles(record["findings"])] == [ROOTS[name]]


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.scope == FLEET])
def test_a_drifted_node_is_go_by_itself_and_tells_its_version(judged, name):
    healthy, drifted = judged(FAULTS[name].type), judged(FAULTS[name].type, name)
    assert (healthy["verdict"], drifted["verdict"]) == ("go", "go")
    different = {key for key, value in healthy["versions"].items() if drifted["versions"].get(key) != value}
    assert different == {FAULTS[name].check.replace("uniform_", "")}
    assert FAULTS[name].comes_to == f"no-go, drift across the fleet: {FAULTS[name].check}"


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if ", from level " in fault.comes_to])
def test_below_its_level_a_fault_is_not_looked_for(judged, name):
    below = LEVELS[LEVELS.index(FAULTS[name].level) - 1]
    assert judged(FAULTS[name].type, name, level=below)["verdict"] == str(Verdict.GO)


def test_a_hung_tool_leaves_no_process_behind(park, judged, monkeypatch):
    short = tuple(dataclasses.replace(probe, deadline_s=0.3) for probe in probes.PROBES if probe.id == "nvidia-smi")
    monkeypatch.setattr(node, "plan", lambda *_: short)
    record = judged("p5.48xlarge", "tool_hung")
    assert [probe["timed_out"] for probe in record["probes"]] == [True]
    assert processes(str(park)) == []


def test_each_fault_with_a_root_is_one_of_the_demo_s():
    assert set(ROOTS) <= set(FAULTS)


def test_one_silent_device_is_one_device(judged):
    found = judged("p5.48xlarge", "efa_silent", level="standard")["findings"]
    assert len([finding for finding in found if finding["check"] == "efa_loopback"]) == 1


def test_two_faults_at_once_are_both_found(judged):
    record = judged("p5.48xlarge", "remap_pending", "efa_missing")
    found = statuses(record)
    assert "FAIL" in found["row_remap"]
    assert "FAIL" in found["efa_count"]
    assert record["verdict"] == "no-go"


def test_errors_counted_between_two_runs_are_dated(judged, tmp_path):
    with SqliteStore(tmp_path / "runs.sqlite") as store:
        for hour, faults in ((1, ()), (2, ("ecc_corrected",))):
            run = Run(
                f"run-{hour}", f"2026-11-20T{hour:02}:00:00+00:00", hosts=(ExpectedHost("gpu-01", "p5.48xlarge"),)
            )
            store.start(run)
            store.save(run.run_id, {**judged("p5.48xlarge", *faults), "host": "gpu-01"})
        (row,) = judge_run(store, "run-2").rows
    (finding,) = [finding for finding in row.findings if finding["check"] == "growth_ecc"]
    assert (finding["status"], finding["measured"]) == ("WARN", 200_000)
    assert finding["device"]["serial"]
    assert row.verdict is Verdict.GO
