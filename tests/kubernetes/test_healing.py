"""Healing through a real API server: cordon, evict within the budget, uncordon; what others set stays."""

import json

import pytest

from flightline import contract
from flightline.healing.journal.ledger import SqliteLedger
from flightline.healing.site import SitePolicy
from flightline.healing.steps.kubernetes import KubernetesError, KubernetesScheduler
from flightline_node.kubernetes.names import CORDON
from flightline_node.watch.rule import RulePolicy
from tests.healing.control import Clock, controller, groups, sighting
from tests.healing.world import World

from . import fleet
from .cluster import made

WHERE = "jobs"
REASON = "flightline: xid GPU 3 by remediate at quick for xid.79 run nightly-1"


@pytest.fixture(scope="module")
def jobs(plane):
    fleet.install(plane)
    plane.apply(made("Namespace", WHERE), made("ServiceAccount", "default", WHERE))
    return plane


@pytest.fixture
def node(jobs, request):
    name = fleet.named(request.node.name)
    fleet.register(jobs, name)
    jobs.merge_node(name, spec={"taints": None})
    return name


@pytest.fixture
def scheduler(jobs):
    """The rule lets it: the tests share their reason and their type."""
    return KubernetesScheduler(jobs.client, policy=RulePolicy(100, 100))


def pod(plane, node, name, gpus=8, **labels):
    limits = {"limits": {contract.KUBE_GPU_RESOURCE: str(gpus)}} if gpus else {}
    spec = {"schedulerName": "test", "containers": [{"name": "x", "image": "x", "resources": limits}]}
    where = f"/api/v1/namespaces/{WHERE}/pods"
    plane.ask("POST", where, made("Pod", name, WHERE, metadata={"labels": labels}, spec=spec))
    bound = made("Binding", name, target={"kind": "Node", "name": node})
    plane.ask("POST", f"{where}/{name}/binding", bound)  # as a scheduler does
    ready = [{"type": "Ready", "status": "True"}]
    plane.say_status(f"{where}/{name}", {"phase": "Running", "conditions": ready})


def test_a_cordon_with_its_reason_and_back(jobs, scheduler, node):
    scheduler.drain(node, REASON)
    assert "SchedulingDisabled" in jobs.kubectl("get", "node", node)
    seen = scheduler.place(node)
    assert seen.ours and seen.reason == REASON and not seen.foreign
    scheduler.resume(node)
    assert not scheduler.place(node).out
    assert CORDON not in jobs.node(node)["metadata"].get("annotations", {})


def test_of_one_reason_no_more_are_cordoned_than_the_rule_lets(jobs, node):
    fleet.register(jobs, f"{node}-2")
    for name in (node, f"{node}-2"):
        jobs.kubectl("label", "node", name, f"{contract.KUBE_TYPE_LABEL}=of.two", "--overwrite")
    jobs.merge_node(f"{node}-2", spec={"taints": None})
    scheduler = KubernetesScheduler(jobs.client)
    scheduler.drain(node, REASON)
    with pytest.raises(KubernetesError, match="1 of 2 are out for the same reason"):
        scheduler.drain(f"{node}-2", REASON)
    scheduler.drain(f"{node}-2", REASON.replace("xid.79", "xid.48"))


def test_an_operators_cordon_stays(jobs, scheduler, node):
    jobs.kubectl("cordon", node)
    assert scheduler.place(node).foreign
    with pytest.raises(KubernetesError, match="somebody else"):
        scheduler.drain(node, REASON)
    scheduler.resume(node)
    assert "SchedulingDisabled" in jobs.kubectl("get", "node", node)


MANAGED = [("karpenter.sh/nodepool=gpu", "Karpenter"), ("eks.amazonaws.com/compute-type=auto", "EKS Auto Mode")]


@pytest.mark.parametrize(("label", "manager"), MANAGED)
def test_a_node_that_somebody_else_repairs_is_left_to_them(jobs, scheduler, node, world, tmp_path, label, manager):
    jobs.kubectl("label", "node", node, label)
    pod(jobs, node, f"theirs-{len(label)}")
    with pytest.raises(KubernetesError, match=manager):
        scheduler.drain(node, REASON)
    said = rounds(jobs, scheduler, world, tmp_path / "runs.sqlite", Clock(), 6, [node], requeue_after_min=1)
    assert any(manager in line for line in said), said
    assert not world.effects() and "SchedulingDisabled" not in jobs.kubectl("get", "node", node)
    assert _pod(jobs, f"theirs-{len(label)}") == "running"


def test_a_node_of_eks_that_auto_mode_does_not_run_is_healed(jobs, scheduler, node):
    jobs.kubectl("label", "node", node, "eks.amazonaws.com/compute-type=ec2")
    scheduler.drain(node, REASON)
    assert "SchedulingDisabled" in jobs.kubectl("get", "node", node)


def test_the_agents_taint_is_out_of_service_with_its_reason(jobs, scheduler, node):
    taint = {"key": contract.KUBE_FAULT_TAINT, "effect": "NoSchedule"}
    words = json.dumps({"verdict": "no-go", "level": "quick", "run": "r", "at": "t", "boot": "b", "why": REASON})
    jobs.merge_node(node, metadata={"annotations": {"flightline/standing": words}}, spec={"taints": [taint]})
    assert scheduler.place(node).ours and scheduler.place(node).reason == REASON
    scheduler.resume(node)
    assert jobs.node(node)["spec"]["taints"] == [taint], "only the agent's go lifts it"


def test_pods_with_gpus_are_its_jobs_and_are_evicted(jobs, scheduler, node):
    pod(jobs, node, "rank-0")
    pod(jobs, node, "sidecar", gpus=0)
    assert [job.id for job in scheduler.place(node).jobs] == [f"{WHERE}/rank-0"]
    scheduler.requeue(f"{WHERE}/rank-0")
    found = jobs.until(lambda: _pod(jobs, "rank-0") in (None, "ending"), "it is gone or is ending")
    assert found
    assert _pod(jobs, "sidecar") == "running"


def end(plane, name):
    """As kubelet ends a pod, which may be gone already."""
    plane.kubectl("delete", "pod", "-n", WHERE, name, "--force", "--grace-period=0", "--ignore-not-found")


def _pod(plane, name):
    for one in plane.ask("GET", f"/api/v1/namespaces/{WHERE}/pods")["items"]:
        if one["metadata"]["name"] == name:
            return "ending" if one["metadata"].get("deletionTimestamp") else "running"
    return None


def keep_one(plane, namespace, name):
    """A budget by which one pod of an app has to stay; its path."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}
    plane.apply(made("PodDisruptionBudget", name, namespace, "policy/v1", spec=spec))
    return f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/{name}"


def budget(jobs, name):
    """One that never allows an eviction."""
    path = keep_one(jobs, WHERE, name)
    generation = jobs.ask("GET", path)["metadata"]["generation"]
    # As the controller manager counts: one is there and one has to stay.
    counted = {"observedGeneration": generation, "disruptionsAllowed": 0, "currentHealthy": 1}
    counted |= {"desiredHealthy": 1, "expectedPods": 1}
    jobs.merge(f"{path}/status", {"status": counted})


def test_a_budget_that_never_allows_eviction_is_said_and_the_pod_stays(jobs, scheduler, node):
    pod(jobs, node, "held-0", app="held")
    budget(jobs, "held")
    with pytest.raises(KubernetesError, match="disruption budget"):
        scheduler.requeue(f"{WHERE}/held-0")
    assert _pod(jobs, "held-0") == "running"


def test_a_node_is_found_by_its_instance_id_and_one_that_is_not_there_is_said(jobs, scheduler, node):
    instance = jobs.node(node)["spec"]["providerID"].rpartition("/")[2]
    assert scheduler.place(instance).known
    assert not scheduler.place("nobody").known
    with pytest.raises(KubernetesError, match="no Node of that name"):
        scheduler.drain("nobody", REASON)


def test_a_server_that_is_away_is_said(jobs, tmp_path):
    (tmp_path / "kubeconfig").write_text((jobs.place / "kubeconfig").read_text().replace(str(jobs.port), "9"))
    away = KubernetesScheduler(
        ("kubectl", f"--kubeconfig={tmp_path}/kubeconfig", f"--cache-dir={tmp_path}"), timeout_s=5
    )
    with pytest.raises(KubernetesError, match="kubectl get nodes"):
        away.places(["gpu-07"])
    with pytest.raises(KubernetesError, match="not found"):
        KubernetesScheduler((str(tmp_path / "kubectl"),)).places(["gpu-07"])


@pytest.fixture
def world(tmp_path, node):
    return sick_world(tmp_path, node, [node])


def sick_world(place, sick, known):
    """A world in which one node has a fault, with so many more that the budget lets it go."""
    world = World(place / "world")
    world.make([*known, *(f"well-{number}" for number in range(9))])
    world.set(sick, fault="REBOOT")
    return world


def rounds(jobs, scheduler, world, store, clock, count, hosts=(), **site):
    said = []
    for _ in range(count):
        clock.forward(60)
        with controller(store, world, clock, site=SitePolicy(**site)) as one:
            one.ports.scheduler, one.say = scheduler, said.append
            one.round([sighting(world, clock, host) for host in hosts], groups(world))
        hosts = ()
    return said


def test_a_sick_node_is_cordoned_its_pod_evicted_and_it_returns_with_proof(jobs, scheduler, node, world, tmp_path):
    clock, store = Clock(), tmp_path / "runs.sqlite"
    pod(jobs, node, "rank-1")
    rounds(jobs, scheduler, world, store, clock, 2, [node], requeue_after_min=1)
    assert scheduler.place(node).ours and "SchedulingDisabled" in jobs.kubectl("get", "node", node)
    rounds(jobs, scheduler, world, store, clock, 3, requeue_after_min=1)
    assert _pod(jobs, "rank-1") in (None, "ending")
    end(jobs, "rank-1")
    rounds(jobs, scheduler, world, store, clock, 8, requeue_after_min=1)
    assert not scheduler.place(node).out and "SchedulingDisabled" not in jobs.kubectl("get", "node", node)
    assert [line["what"] for line in world.effects()] == ["REBOOT", "judged", "release"]
    with SqliteLedger(store) as ledger:
        (one,) = ledger.incidents()
    assert one.closed_at and one.proof


def test_a_pod_that_its_budget_holds_for_ever_is_said_and_nothing_is_repaired_under_it(
    jobs, scheduler, node, world, tmp_path
):
    clock, store = Clock(), tmp_path / "runs.sqlite"
    pod(jobs, node, "held-1", app="held-1")
    budget(jobs, "held-1")
    said = rounds(jobs, scheduler, world, store, clock, 12, [node], requeue_after_min=1)
    assert any("disruption budget" in line for line in said), said
    assert _pod(jobs, "held-1") == "running" and not world.effects()
    assert scheduler.place(node).ours, "it stays cordoned"


def test_a_pod_that_never_ends_keeps_its_node_out_and_nothing_is_repaired_under_it(
    jobs, scheduler, node, world, tmp_path
):
    clock, store = Clock(), tmp_path / "runs.sqlite"
    pod(jobs, node, "stuck-1")
    path = f"/api/v1/namespaces/{WHERE}/pods/stuck-1"
    jobs.merge(path, {"metadata": {"finalizers": ["site.example/never"]}})
    said = rounds(jobs, scheduler, world, store, clock, 10, [node], requeue_after_min=1)
    assert _pod(jobs, "stuck-1") == "ending", "it was evicted, and does not go"
    assert not world.effects() and scheduler.place(node).ours, said
    assert [job.id for job in scheduler.place(node).jobs] == [f"{WHERE}/stuck-1"]
    jobs.merge(path, {"metadata": {"finalizers": None}})
    end(jobs, "stuck-1")


def test_a_node_that_was_replaced_under_its_name_meanwhile_is_its_agents_to_prove(
    jobs, scheduler, node, world, tmp_path
):
    """Deleted while its job runs out, and another machine registers by the same name: no step of the old incident."""
    clock, store = Clock(), tmp_path / "runs.sqlite"
    pod(jobs, node, "rank-7")
    rounds(jobs, scheduler, world, store, clock, 2, [node])
    assert scheduler.place(node).ours
    jobs.kubectl("delete", "node", node)
    said = rounds(jobs, scheduler, world, store, clock, 2)
    assert not world.effects() and any("no such Node any more" in line for line in said), said
    jobs.kubectl("delete", "pod", "-n", WHERE, "rank-7", "--force", "--grace-period=0")  # as its node's garbage is
    fleet.register(jobs, node)
    rounds(jobs, scheduler, world, store, clock, 3)
    listed = jobs.node(node)
    assert CORDON not in listed["metadata"].get("annotations", {}) and not listed["spec"].get("unschedulable")
    assert {one["key"] for one in listed["spec"]["taints"]} == {contract.KUBE_STARTUP_TAINT}
    assert not world.effects(), "a new machine is not rebooted for the old one's fault"


def test_a_node_that_was_renamed_is_found_by_its_instance(jobs, scheduler, node, request):
    """The inventory's name is the old one's; the instance is the same."""
    provider = jobs.node(node)["spec"]["providerID"]
    jobs.kubectl("delete", "node", node)
    fleet.register(jobs, f"{node}-new", providerID=provider)
    assert not scheduler.place(node).known
    instance = provider.rpartition("/")[2]
    jobs.ask("PATCH", f"/api/v1/nodes/{node}-new", {"spec": {"taints": None}}, kind="application/merge-patch+json")
    scheduler.drain(instance, REASON)
    assert jobs.node(f"{node}-new")["spec"]["unschedulable"] is True
