"""Idle Nodes are lent by a taint. The test's own kubectl keeps Nodes and pods in files, as the API server would."""

import json
import sys

import pytest

from flightline.healing.journal.stamps import later
from flightline.healing.steps.kubernetes import PROOF_TAINT, KubernetesScheduler

from .made import T0

KUBECTL = """
import json, pathlib, sys
words = [word for word in sys.argv[2:] if not word.startswith("--")]
path = pathlib.Path(sys.argv[1])
state = json.loads(path.read_text())
if words[0] == "get":
    print(json.dumps({"items": state[words[1]]}))
elif words[:2] == ["taint", "nodes"]:
    *names, change = words[2:]
    for node in state["nodes"]:
        if node["metadata"]["name"] in names:
            key = change.rstrip("-").partition("=")[0]
            kept = [one for one in node["spec"].get("taints", []) if one["key"] != key]
            node["spec"]["taints"] = kept + ([] if change.endswith("-") else [{"key": key, "effect": "NoSchedule"}])
    path.write_text(json.dumps(state))
"""
GPUS = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}]}


def pod(name, at=T0, spec=GPUS, waits=True, **more):
    conditions = [{"type": "PodScheduled", "status": "False"}] if waits else []
    meta = {"name": name, "namespace": "jobs", "creationTimestamp": at}
    return {"metadata": meta, "spec": {**spec, **more}, "status": {"phase": "Pending", "conditions": conditions}}


@pytest.fixture
def cluster(tmp_path):
    path = tmp_path / "state.json"

    def made(*pods, **labels):
        nodes = [{"metadata": {"name": f"n{n}", "labels": labels.get(f"n{n}", {})}, "spec": {}} for n in range(1, 4)]
        path.write_text(json.dumps({"nodes": nodes, "pods": list(pods)}))
        return KubernetesScheduler((sys.executable, "-c", KUBECTL, str(path)))

    def tainted():
        nodes = json.loads(path.read_text())["nodes"]
        return [
            one["metadata"]["name"]
            for one in nodes
            if any(t["key"] == PROOF_TAINT for t in one["spec"].get("taints", []))
        ]

    made.tainted = tainted  # type: ignore[attr-defined]  # tests ask it of the function
    return made


def test_lent_and_given_back_whoever_lent_it(cluster):
    one = cluster(pod("busy", waits=False, nodeName="n2"), n3={"karpenter.sh/nodepool": "gpu"})
    assert one.hold(["n1", "n2", "n3"]) == ["n1"] and cluster.tainted() == ["n1"]
    assert not one.place("n1").foreign and not one.place("n1").out
    assert one.give_back(keep=["n1"]) == [] and one.give_back() == ["n1"] and one.give_back() == []
    assert cluster.tainted() == []


@pytest.mark.parametrize(
    ("waiting", "said"),
    [
        (pod("new", later(T0, 1)), "pod jobs/new waits"),
        (pod("old", later(T0, -60)), ""),
        (pod("web", later(T0, 1), {"containers": [{}]}), ""),
        (pod("placed", later(T0, 1), waits=False, nodeName="n1"), ""),
    ],
)
def test_who_waits_for_them(cluster, waiting, said):
    assert cluster(waiting).waiting(["n1"], T0) == said
