"""`flightline preflight --via kubernetes`: Nodes and pods of a real API server. kubelet's part is simulated: a kubectl of
the test runs `exec` here, on the demo fleet, and hands everything else to the real one.
"""

import os
import shutil

import pytest

from flightline import contract
from flightline.kubernetes.agent import library_name, own_library_name
from tests.beds import BIN, program, ran
from tests.launchers.conftest import NODES, demo, package
from tests.launchers.test_slurm import found_alike, judged
from tools import nodepackage

from . import fleet as nodes
from .cluster import cluster, made

__all__ = ["package"]
HOSTS = [f"gpu-{number:02}" for number in range(1, NODES + 1)]

# Simulated: what kubelet and the container would do. The node's root is this machine's, its library is the file's.
KUBECTL = """\
#!/bin/bash
for word; do [ "$word" = exec ] && here=1; done
[ -n "$here" ] || exec {real} --kubeconfig={config} --cache-dir={cache} "$@"
while [ "$1" != -- ]; do case $1 in agent-gpu-07) echo 'error: unable to upgrade connection: container not found' >&2; exit 1;; esac; shift; done
script="${{@: -1}}"
exec /bin/sh -c "${{script//\\/run\\/flightline\\/library\\/flightline-node.pyz/{package}}}"
"""


@pytest.fixture(scope="module")
def agents(plane, tmp_path_factory):
    """Eight Nodes with their agents' pods, running, and no other; gpu-04's has another version of the library."""
    with cluster(tmp_path_factory.mktemp("preflight")) as own:
        nodes.install(own)
        where = f"/api/v1/namespaces/{contract.KUBE_NAMESPACE}/pods"
        for name in HOSTS:
            nodes.register(own, name)
            library = library_name(b"another") if name == "gpu-04" else own_library_name()
            spec: dict = {"serviceAccountName": contract.KUBE_AGENT, "nodeName": name}
            spec["containers"] = [{"name": "judge", "image": "x"}]
            spec["volumes"] = [{"name": "library", "configMap": {"name": library}}]
            labels = {"app.kubernetes.io/name": contract.KUBE_AGENT}
            own.ask("POST", where, made("Pod", f"agent-{name}", metadata={"labels": labels}, spec=spec))
            own.say_status(f"{where}/agent-{name}", {"phase": "Running"})
        yield own


@pytest.fixture
def fleet(tmp_path, agents, package, monkeypatch):
    asked = demo(tmp_path, {}, package, lambda number: {})
    built = nodepackage.build(tmp_path / "flightline-node.pyz").path
    words = {"real": shutil.which("kubectl"), "config": agents.place / "kubeconfig", "cache": agents.place / "cache"}
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin" / "kubectl", KUBECTL.format(**words, package=str(built).replace("/", "\\/")))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    return asked


def test_verdict_and_findings_are_those_of_ansible_but_for_agents_that_cannot_be_asked(fleet):
    fleet.preflight(timeout=400)
    by_ansible = judged(fleet)
    status, said = fleet.preflight("--via", "kubernetes", timeout=400)
    rows = judged(fleet)
    assert status == 1, said
    assert "wanted flightline-node-library-" in rows["gpu-04"]["findings"][0]["message"]
    assert "container not found" in rows["gpu-07"]["findings"][0]["message"]
    assert {rows[host]["findings"][0]["status"] for host in ("gpu-04", "gpu-07")} == {"UNREACHABLE"}
    others = {host for host in HOSTS if host not in ("gpu-04", "gpu-07")}
    found_alike({host: rows[host] for host in others}, {host: by_ansible[host] for host in others})


def test_a_gpu_node_that_the_inventory_lacks_is_absent_and_a_host_without_a_node_is_said(fleet, agents):
    nodes.register(agents, "gpu-99")

    def without(demo):
        demo["hosts"]["elsewhere"] = demo["hosts"].pop("gpu-08")

    fleet.set(without)
    status, said = fleet.preflight("--via", "kubernetes", timeout=400)
    rows = fleet.rows()
    assert status == 1 and rows["gpu-99"]["findings"][0]["check"] == "absent", said
    assert "Kubernetes has no Node elsewhere" in rows["elsewhere"]["findings"][0]["message"]
    agents.kubectl("delete", "node", "gpu-99", "--wait=false")


def test_the_clusters_own_nodes_are_the_inventory(fleet, agents):
    """No inventory but the cluster: this machine stands for every node, has no GPU, and so none is go."""
    status, said = preflight(fleet, "-i", "kubernetes")
    rows = fleet.rows()
    assert status == 1 and set(rows) == set(HOSTS), said
    assert rows["gpu-01"]["instance_type"] == "p5.48xlarge"
    assert {"gpu_count"} <= {one["check"] for one in rows["gpu-01"]["findings"] if one["status"] in ("FAIL", "UNKNOWN")}
    assert "wanted flightline-node-library-" in rows["gpu-04"]["findings"][0]["message"]
    status, again = preflight(fleet, "--only-failed-of", "latest")
    assert status == 1 and "NO-GO" in again, "the file that the run names is still an inventory"


def test_the_clusters_inventory_and_the_sites_say_the_same_as_ansible(fleet):
    """The demo fleet's variables beside it: verdicts and findings are those of the same fleet by Ansible."""
    fleet.preflight(timeout=400)
    by_ansible = judged(fleet)
    status, said = preflight(fleet, "-i", "kubernetes", "-i", str(fleet.inventory))
    rows = judged(fleet)
    assert status == 1, said
    others = {host for host in HOSTS if host not in ("gpu-04", "gpu-07")}
    found_alike({host: rows[host] for host in others}, {host: by_ansible[host] for host in others})


def test_a_cluster_that_cannot_be_asked_is_no_verdict(fleet, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    argv = [BIN / "flightline", "preflight", "-i", "kubernetes", "--store", fleet.place / "runs.sqlite"]
    done = ran(*argv, env={**fleet.env, "PATH": str(BIN)}, timeout=400)
    assert done.returncode == 2 and "saw no kubectl on the PATH" in done.stderr and "Traceback" not in done.stderr


def preflight(fleet, *words, command="preflight"):
    done = ran("flightline", command, "--store", fleet.place / "runs.sqlite", *words, env=fleet.env, timeout=400)
    return done.returncode, done.stdout + done.stderr


def test_healing_finds_the_cluster_by_the_run_and_cordons_the_sick_node_alone(fleet, agents):
    """No word of Kubernetes on the command line: the run was by its inventory."""
    fleet.set(lambda demo: demo["hosts"]["gpu-02"].update(demo_faults=["ecc_uncorrected"]))
    for name in HOSTS:  # their agents have said go
        agents.merge_node(name, spec={"taints": None})
    sources = ("-i", "kubernetes", "-i", str(fleet.inventory))
    status, said = preflight(fleet, *sources, "--limit", "gpu-01,gpu-02,gpu-05")
    assert status == 1, said
    status, said = remediate(fleet)
    assert "gpu-02" in said and "SchedulingDisabled" not in agents.kubectl("get", "nodes"), "advice changes nothing"
    status, said = remediate(fleet, "--mode", "act")
    listed = agents.kubectl("get", "nodes").splitlines()
    assert [line.split()[0] for line in listed if "SchedulingDisabled" in line] == ["gpu-02"], said
    assert agents.node("gpu-02")["metadata"]["annotations"]["flightline/cordon"].startswith("flightline: ecc")
    agents.kubectl("uncordon", "gpu-02")


def remediate(fleet, *words):
    status, said = preflight(fleet, *words, command="remediate")
    assert status in (0, 1), said
    return status, said
