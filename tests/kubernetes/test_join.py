"""A node joins tainted, is judged, and becomes schedulable: a real API server, the agent as a process, no kubelet."""

import json
import urllib.request

import pytest

from flightline import contract

from . import fleet
from .fleet import KubeNode


@pytest.fixture(scope="module", autouse=True)
def installed(plane):
    fleet.install(plane)


@pytest.fixture
def node(plane, tmp_path, request):
    made = KubeNode(plane, fleet.named(request.node.name), tmp_path)
    yield made
    made.down()


def events(plane, name):
    return plane.kubectl(
        "events", "-n", "default", "--for", f"node/{name}", "-o", "jsonpath={.items[*].reason}"
    ).split()


def test_a_node_joins_tainted_is_judged_and_is_schedulable(plane, node):
    node.register()
    assert node.taints() == {contract.KUBE_STARTUP_TAINT}
    node.join()
    plane.until(lambda: not node.taints(), "no taint is left")
    plane.until(lambda: node.condition().get("status") == "True", "the condition is True")
    found = plane.node(node.name)
    assert found["metadata"]["labels"][contract.KUBE_VERDICT_LABEL] == "go"
    assert node.condition()["reason"] == "NodeProven"
    assert [one["status"] for one in found["status"]["conditions"] if one["type"] == "Ready"] == ["True"]
    plane.until(lambda: "NodeProven" in events(plane, node.name), "the Event is there")
    described = plane.kubectl("describe", "node", node.name)
    assert "FlightlineReady" in described and "NodeProven" in described and "Taints:             <none>" in described
    records = [json.loads(line) for line in (node.place / "records.jsonl").read_text().splitlines()]
    assert records, "the record is in the log that goes to the run store"


def test_a_node_that_is_no_go_never_loses_its_startup_taint(plane, node):
    node.register()
    node.judged_by("gpu_count", instance_type="p5.48xlarge")  # this machine has no GPU
    node.join()
    both = {contract.KUBE_STARTUP_TAINT, contract.KUBE_FAULT_TAINT}
    plane.until(lambda: node.taints() == both, "both taints")
    plane.until(lambda: node.condition().get("status") == "False", "the condition is False")
    assert node.condition()["reason"] == "NodeUnclean" and "gpu_count" in node.condition()["message"]


def test_a_check_that_cannot_run_proves_nothing(plane, node):
    node.register()
    node.settings.write_text("{")
    node.join()
    plane.until(lambda: node.condition().get("message", "").startswith("not judged"), "it is said")
    assert node.condition()["status"] == "Unknown" and node.taints() == {contract.KUBE_STARTUP_TAINT}


def test_a_taint_that_somebody_took_away_is_set_again(plane, node):
    node.register()
    node.settings.write_text("{")  # no verdict comes
    node.join()
    plane.until(lambda: node.condition().get("message", "").startswith("not judged"), "the agent is there")
    plane.kubectl("taint", "node", node.name, f"{contract.KUBE_STARTUP_TAINT}-")
    plane.until(lambda: node.taints() == {contract.KUBE_STARTUP_TAINT}, "only a go takes it")
    assert "it is set again" in node.said()


def test_an_operators_cordon_taint_and_labels_stay(plane, node):
    node.register()
    plane.kubectl("cordon", node.name)
    plane.kubectl("taint", "node", node.name, "site/maintenance=rack-7:NoSchedule")
    plane.kubectl("label", "node", node.name, "site/rack=7")
    node.join()
    plane.until(lambda: node.condition().get("status") == "True", "it is judged")
    found = plane.node(node.name)
    assert found["spec"]["unschedulable"] is True
    assert {"site/maintenance", "node.kubernetes.io/unschedulable"} >= node.taints() >= {"site/maintenance"}
    assert found["metadata"]["labels"]["site/rack"] == "7"
    assert "SchedulingDisabled" in plane.kubectl("get", "node", node.name)


def test_a_node_replaced_under_the_same_name_is_unproven_again(plane, node):
    node.register()
    node.join()
    plane.until(lambda: not node.taints(), "proven")
    plane.kubectl("delete", "node", node.name, "--wait=false")
    plane.until(lambda: "404" in node.said(), "the agent says that its Node is gone")
    node.judged_by("gpu_count", instance_type="p5.48xlarge")
    fleet.register(plane, node.name)
    plane.until(lambda: contract.KUBE_FAULT_TAINT in node.taints(), "the other machine is judged on its own")
    assert contract.KUBE_STARTUP_TAINT in node.taints()


def test_metrics_and_health_are_served(plane, node):
    node.register()
    node.join()
    plane.until(lambda: not node.taints(), "proven")
    port = node.said().partition("metrics on port ")[2].split()[0]

    def page():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            return answer.read().decode()

    plane.until(lambda: "\nflightline_ready 1\n" in page(), "the metrics say that it is ready")
    assert 'flightline_standing{verdict="go"} 1' in page()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=60) as answer:
        assert answer.read() == b"ok\n"
