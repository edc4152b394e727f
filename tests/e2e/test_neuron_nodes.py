"""Trainium and Inferentia nodes as a whole: what is asked, what is not, and that silence is no pass.

The tools are simulated.
"""

import pytest

from flightline_node import settings
from flightline_node.judge import judgement as judging
from flightline_node.judge.checks import CHECKS
from flightline_node.know.expected import known_types, resolve
from flightline_node.model import Status, Verdict
from flightline_node.read.bundle import load
from tests.beds import simulated
from tests.harness import NOW

NEURON = [name for name in known_types() if resolve(name).has_neuron]
OF_NVIDIA = {
    *("nvidia_smi", "nvidia_smi_topo", "nvlink", "dcgm_diag"),
    *("nccl_tests", "nccl_debug", "nvbandwidth", "gpu_load"),
}
OF_NEURON = {check.id for check in CHECKS.values() if "neuron" in check.tags}


@pytest.fixture
def run(tmp_path):
    """Collect and judge a simulated node; `judged` is the type that the inventory names."""

    return lambda kind, judged, level="quick": simulated(tmp_path / "node", kind, level=level, judged_as=judged)


def without_outputs(place, name):
    """The judgement of a node of which nothing was collected."""
    return judging.judge(load(place), resolve(name), settings.build(level="deep"), NOW, required=True)


@pytest.mark.parametrize("name", NEURON)
def test_nothing_collected_is_unknown_and_no_go(tmp_path, name):
    judged = without_outputs(tmp_path, name)
    unknown = {finding.check for finding in judged.findings if finding.status is Status.UNKNOWN}
    assert judged.verdict is Verdict.NO_GO
    assert unknown >= OF_NEURON


@pytest.mark.parametrize("name", NEURON)
def test_no_nvidia_check_waits_for_what_such_a_node_has_not(tmp_path, name):
    judged = without_outputs(tmp_path, name)
    waiting = {finding.check for finding in judged.findings if finding.status is not Status.SKIP}
    assert {check for check in waiting if OF_NVIDIA & {*CHECKS[check].needs}} == set()


def test_neuron_checks_skip_every_other_type(tmp_path):
    judged = without_outputs(tmp_path, "p5.48xlarge")
    mine = [finding for finding in judged.findings if finding.check in OF_NEURON]
    assert {finding.status for finding in mine} == {Status.SKIP}
    assert {finding.message for finding in mine} == {"no Neuron device in p5.48xlarge"}


def test_a_neuron_machine_without_a_type_is_go_by_its_own_tools(run):
    record = run("trn1.32xlarge", "none", "standard")
    assert [item for item in record["findings"] if item["status"] in ("FAIL", "UNKNOWN")] == []
    assert record["verdict"] == "go"
    assert "neuron-ls" in {probe["id"] for probe in record["probes"]}


def test_a_gpu_machine_without_a_type_says_that_it_has_no_neuron_device(run):
    record = run("g6.xlarge", "none")
    mine = {item["message"] for item in record["findings"] if item["check"] in OF_NEURON}
    assert mine == {"no Neuron driver and no Neuron device on this machine"}


def test_the_record_names_the_devices_and_versions(run):
    record = run("trn2.48xlarge", "trn2.48xlarge")
    assert [gpu["name"] for gpu in record["gpus"]] == [f"neuron{index}" for index in range(16)]
    assert all(gpu["serial"] for gpu in record["gpus"])
    assert record["versions"]["driver"] == "2.24.7.0"
    assert record["versions"]["neuron_runtime"] == "2.28.23.0"


def test_a_gpu_machine_judged_as_a_neuron_type_is_no_go(run):
    record = run("g6.xlarge", "trn1.2xlarge")
    bad = {item["check"] for item in record["findings"] if item["status"] in ("FAIL", "UNKNOWN")}
    assert {"neuron_devices", "neuron_driver", "neuron_ecc"} <= bad
    assert record["verdict"] == "no-go"
