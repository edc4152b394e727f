"""What the agent's token may do: over its own Node what is Flightline's, and nothing else. RBAC and admission are real."""

import json
import urllib.error

import pytest

from flightline import contract
from flightline.kubernetes import control, rights, site

from . import fleet
from .cluster import made

MERGE = "application/merge-patch+json"
STATUS = "application/strategic-merge-patch+json"


@pytest.fixture(scope="module")
def own(plane):
    """The token of the agent on node rights-1; rights-2 is another."""
    fleet.install(plane)
    for name in ("rights-1", "rights-2"):
        fleet.register(plane, name)
    token = fleet.token(plane, "rights-1")
    plane.until(
        lambda: refused(plane, token, "rights-2", {"metadata": {"labels": {"flightline/x": "y"}}}), "policies hold"
    )
    return token


def change(plane, token, name, body, part="", kind=MERGE):
    return plane.ask("PATCH", f"/api/v1/nodes/{name}{part}", body, token, kind)


def refused(plane, token, name, body, part="", kind=MERGE):
    """What the API server says; '' when it does it."""
    try:
        change(plane, token, name, body, part, kind)
    except urllib.error.HTTPError as error:
        assert error.code == 403
        return error.read().decode()
    return ""


def condition(kind):
    return {"status": {"conditions": [{"type": kind, "status": "False", "reason": "Test", "message": "x"}]}}


def test_its_own_taints_labels_and_condition(plane, own):
    taint = {"key": contract.KUBE_FAULT_TAINT, "effect": "NoSchedule"}
    there = plane.node("rights-1")["spec"]["taints"]
    change(plane, own, "rights-1", {"spec": {"taints": [*there, taint]}})
    change(plane, own, "rights-1", {"metadata": {"labels": {contract.KUBE_VERDICT_LABEL: "no-go"}}})
    change(plane, own, "rights-1", condition(contract.KUBE_CONDITION), "/status", STATUS)


def test_another_nodes_status_is_denied(plane, own):
    said = refused(plane, own, "rights-2", condition(contract.KUBE_CONDITION), "/status", STATUS)
    assert "its own Node alone" in said
    assert "its own Node alone" in refused(plane, own, "rights-2", {"spec": {"taints": []}})


@pytest.mark.parametrize(
    ("body", "part", "kind", "word"),
    [
        ({"spec": {"unschedulable": True}}, "", MERGE, "cordon"),
        ({"spec": {"taints": [{"key": "site/x", "effect": "NoSchedule"}]}}, "", MERGE, "other taints"),
        ({"metadata": {"labels": {"site/rack": "7"}}}, "", MERGE, "other labels"),
        ({"metadata": {"labels": {"node.kubernetes.io/instance-type": None}}}, "", MERGE, "other labels"),
        ({"metadata": {"labels": {"flightline/gpu": None}}}, "", MERGE, "node group"),
        ({"metadata": {"annotations": {"site/owner": "x"}}}, "", MERGE, "other annotations"),
        ({"metadata": {"finalizers": ["site/hold"]}}, "", MERGE, "finalizers"),
        (condition("Ready"), "/status", STATUS, "other conditions"),
        ({"status": {"capacity": {"nvidia.com/gpu": "64"}}}, "/status", STATUS, "kubelet reports"),
    ],
)
def test_what_is_not_flightlines_stays(plane, own, body, part, kind, word):
    assert word in refused(plane, own, "rights-1", body, part, kind)


@pytest.mark.parametrize("path", ["/api/v1/pods", "/api/v1/secrets", "/api/v1/namespaces/flightline/configmaps"])
def test_it_lists_nothing_but_nodes(plane, own, path):
    """Nodes it must: it counts who is out for the same reason before it leaves."""
    assert plane.ask("GET", "/api/v1/nodes", token=own)["items"]
    with pytest.raises(urllib.error.HTTPError) as raised:
        plane.ask("GET", path, token=own)
    assert raised.value.code == 403


def test_an_event_of_another_node_is_denied(plane, own):
    def event(name):
        about = {"apiVersion": "v1", "kind": "Node", "name": name}
        return made(
            "Event", "", "default", involvedObject=about, reason="X", message="x", metadata={"generateName": "x"}
        )

    plane.ask("POST", "/api/v1/namespaces/default/events", event("rights-1"), own)
    with pytest.raises(urllib.error.HTTPError) as raised:
        plane.ask("POST", "/api/v1/namespaces/default/events", event("rights-2"), own)
    assert raised.value.code == 403 and b"its own Node alone" in raised.value.read()


def test_a_token_that_is_bound_to_no_node_changes_nothing(plane, own):
    where = f"/api/v1/namespaces/{contract.KUBE_NAMESPACE}/serviceaccounts/{contract.KUBE_AGENT}/token"
    loose = plane.ask("POST", where, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    assert "its own Node alone" in refused(plane, loose, "rights-1", {"metadata": {"labels": {"flightline/x": "y"}}})


CONTROL = f"system:serviceaccount:{contract.KUBE_NAMESPACE}:{contract.KUBE_CONTROL}"


@pytest.mark.parametrize(
    ("words", "may"),
    [
        (("create", "pods", "--subresource=exec", "-n", "flightline"), "yes"),
        (("create", "pods", "--subresource=eviction", "-n", "flightline-training"), "yes"),
        (("patch", "nodes"), "yes"),
        (("list", "pods", "--all-namespaces"), "yes"),
        (("create", "pods", "--subresource=exec", "-n", "flightline-training"), "no"),
        (("create", "pods", "--subresource=exec", "-n", "kube-system"), "no"),
        (("delete", "nodes"), "no"),
        (("delete", "pods", "-n", "flightline-training"), "no"),
        (("get", "secrets", "--all-namespaces"), "no"),
        (("create", "pods", "-n", "flightline"), "no"),
    ],
)
def test_the_control_side_steps_into_agents_and_evicts_and_no_more(plane, own, words, may):
    wanted = site.of_outputs({**fleet.OUTPUTS, "results_table": "t"}, control_image="x")
    plane.apply(*[one for one in control.manifests(wanted) if one["kind"] in ("Role", "RoleBinding")])

    def said():
        return plane.kubectl("auth", "can-i", *words, f"--as={CONTROL}", check=False).split()[0]

    plane.until(lambda: said() == may, f"{words}: {may}", 60)


def gpu_pod(gpus="8", **spec):
    held = {"limits": {contract.KUBE_GPU_RESOURCE: gpus}} if gpus else {}
    containers = [{"name": "x", "image": "x", "resources": held}]
    return made("Pod", "wanted", "default", spec={"containers": containers, **spec})


def tried(plane, pod):
    """What kubectl says; the pod is not made."""
    return plane.create(pod, "--dry-run=server")


@pytest.fixture(scope="module")
def gate(plane, own):
    plane.apply(made("ServiceAccount", "default", "default"))
    plane.until(lambda: "scheduler" in tried(plane, gpu_pod(nodeName="rights-1")), "the policy holds")
    return plane


@pytest.mark.parametrize(
    ("tolerated", "may"),
    [
        ({"operator": "Exists"}, False),
        ({"operator": "Exists", "effect": "NoSchedule"}, False),
        ({"key": contract.KUBE_STARTUP_TAINT, "operator": "Exists"}, False),
        ({"key": contract.KUBE_FAULT_TAINT, "operator": "Equal", "value": "", "effect": "NoSchedule"}, False),
        ({"key": contract.KUBE_GPU_RESOURCE, "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, True),
    ],
)
def test_a_pod_with_gpus_that_tolerates_the_gate_is_refused(gate, tolerated, may):
    said = tried(gate, gpu_pod(tolerations=[tolerated]))
    assert ("pod/wanted created" in said) is may, said
    assert may or "name the keys that it needs" in said
    assert "pod/wanted created" in tried(gate, gpu_pod(gpus="", tolerations=[tolerated])), "one without GPUs may"


def test_a_running_pod_of_before_may_still_be_changed_and_gains_no_toleration(gate):
    gate.apply(made("Namespace", "debug"))
    gate.kubectl("label", "namespace", "debug", f"{rights.UNGATED_LABEL}=")
    gate.apply(made("ServiceAccount", "default", "debug"))
    pod = gpu_pod(nodeName="rights-1", tolerations=[{"operator": "Exists"}])
    pod["metadata"]["namespace"] = "debug"
    gate.until(lambda: "created" in gate.create(pod), "it is let in")
    gate.kubectl("label", "namespace", "debug", f"{rights.UNGATED_LABEL}-")
    gained = {"key": "flightline/unclean", "operator": "Exists"}
    more = json.dumps([{"op": "add", "path": "/spec/tolerations/-", "value": gained}])
    patch = ("patch", "pod", "-n", "debug", "wanted", "--type=json", "--dry-run=server", "-p", more)
    gate.until(lambda: "name the keys" in gate.kubectl(*patch, check=False), "a further toleration is refused")
    assert "labeled" in gate.kubectl("label", "pod", "-n", "debug", "wanted", "site/owner=x")
    gate.kubectl("delete", "pod", "-n", "debug", "wanted", "--force", "--grace-period=0")
