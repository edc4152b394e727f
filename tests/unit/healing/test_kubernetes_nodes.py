"""Steps of healing by `kubectl exec`: a kubectl of the test answers for the cluster, the library of this tree takes the step here."""

import json
import sys

import pytest

from flightline.healing.journal import incident as incidents
from flightline.healing.plan.observe import from_marker
from flightline.healing.steps.kubernetes_nodes import KubernetesNodes
from flightline.healing.steps.ports import EdgeError
from flightline_node.model import Remedy
from tests.unit.healing.made import incident

# The node's root is a directory of the test; a step that would change this machine is only written down.
KUBECTL = """\
#!/bin/bash
case "$*" in
  *"get nodes"*) cat {place}/nodes.json ;;
  *"get pods"*) cat {place}/pods.json ;;
  *exec*)
    echo "$*" >> {place}/asked
    [[ "$*" == *agent-gone* ]] && {{ echo 'error: unable to upgrade connection' >&2; exit 1; }}
    for step; do :; done
    case $step in *'"look"'*|*'"mark"'*) {python} -m flightline_node repair "${{step%?}}"', "root": "{place}/root"}}' ;; *) echo '{{"outcome": "", "detail": "ordered"}}' ;; esac ;;
esac
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    def node(name, instance):
        return {"metadata": {"name": name}, "spec": {"providerID": f"aws:///us-east-1a/{instance}"}}

    def pod(name, host, phase="Running"):
        return {"metadata": {"name": name}, "spec": {"nodeName": host}, "status": {"phase": phase}}

    nodes = [node("gpu-1", "i-1"), node("gpu-2", "i-2"), node("gpu-3", "i-3"), node("gpu-4", "i-4")]
    pods = [pod("agent-1", "gpu-1"), pod("agent-gone", "gpu-2"), pod("agent-3", "gpu-3", "Pending")]
    (tmp_path / "nodes.json").write_text(json.dumps({"items": nodes}))
    (tmp_path / "pods.json").write_text(json.dumps({"items": pods}))
    (tmp_path / "root/proc/sys/kernel/random").mkdir(parents=True)
    (tmp_path / "root/proc/sys/kernel/random/boot_id").write_text("boot-1\n")
    tool = tmp_path / "bin" / "kubectl"
    tool.parent.mkdir()
    tool.write_text(KUBECTL.format(place=tmp_path, python=sys.executable))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    return tmp_path


def test_a_node_answers_through_its_agents_pod_and_those_without_one_do_not(place):
    found = KubernetesNodes(("kubernetes",)).facts(["gpu-1", "i-1", "gpu-2", "gpu-3", "gpu-4", "nobody"], 3)
    assert set(found) == {"gpu-1", "i-1"}
    assert found["gpu-1"].boot_id == "boot-1" and found["gpu-1"].marker is None
    asked = (place / "asked").read_text()
    assert "exec -i --namespace=flightline agent-1 --container=judge -- /usr/sbin/chroot /host" in asked
    assert "agent-3" not in asked, "it does not run yet"


def test_a_marker_is_set_on_the_node(place):
    nodes = KubernetesNodes(("kubernetes",))
    nodes.mark("gpu-1", 3, "flightline: xid GPU 3", [{"check": "xid", "status": "FAIL", "remedy": "REBOOT"}])
    marker = nodes.facts(["gpu-1"], 3)["gpu-1"].marker
    assert marker and from_marker("gpu-1", "p5", marker).host == "gpu-1"
    with pytest.raises(EdgeError, match="the marker was not set"):
        nodes.mark("gpu-2", 3, "flightline: xid")


def test_a_step_is_ordered_and_a_node_that_is_not_reached_was_not_changed(place):
    nodes = KubernetesNodes(("kubernetes",))
    one = incident("gpu-1")
    assert nodes.repair("gpu-1", Remedy.REBOOT, one).what == incidents.NOT_YET
    assert nodes.repair("gpu-4", Remedy.REBOOT, one).what == incidents.NOT_DONE, "so EC2 may be asked for it"
    with pytest.raises(EdgeError, match="unable to upgrade connection"):
        nodes.repair("gpu-2", Remedy.REBOOT, one)


def test_a_cluster_that_cannot_be_asked_is_said(place, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EdgeError, match="saw no kubectl on the PATH"):
        KubernetesNodes(("kubernetes",)).facts(["gpu-1"], 1)
