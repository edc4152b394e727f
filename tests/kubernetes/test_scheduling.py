"""What lands where: the real scheduler and controllers over nodes that kwok keeps alive.

Simulated: kubelets (kwok), faults, repairs and proofs (tests/healing/world.py). Real: API server, scheduler, controller
manager, JobSet's controller with its webhooks, kubectl, the agent of the first test, the healing controller.
"""

import json
import sys
import time

import pytest
import yaml
from click.testing import CliRunner

from flightline import contract
from flightline.commands import kube
from flightline.healing.steps.kubernetes import KubernetesError, KubernetesScheduler
from tests.healing.control import Clock
from tests.healing.fleet import ready

from . import fleet
from .cluster import cluster, made
from .fleet import KubeNode
from .test_healing import REASON, keep_one, rounds, sick_world
from .test_manifests import DECIDED, FOREIGN, TRAINING, define


@pytest.fixture(scope="module")
def staffed(plane, tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("scheduling")) as one:
        one.controllers()
        one.scheduler()
        one.kwok()
        fleet.install(one)
        yield one


@pytest.fixture
def jobs(staffed, request):
    """A namespace of the test's own; the nodes of other tests are not its."""
    name = fleet.named(request.node.name)
    staffed.kubectl("create", "namespace", name)
    staffed.until(
        lambda: "default" in staffed.kubectl("get", "serviceaccounts", "-n", name, "-o", "name"), "an account"
    )
    yield name
    for kind in ("deployments", "jobs", "pods"):
        staffed.kubectl("delete", kind, "--all", "-n", name, "--wait=false")


@pytest.fixture
def nodes(staffed, jobs):
    """Make nodes of the test; proven: as their agents' go leaves them, which the first test shows."""
    made = []

    def make(count, proven=True, **resources):
        names = [f"{jobs[-40:].strip('-')}-{len(made) + number}" for number in range(count)]
        made.extend(names)
        for name in names:
            fleet.register(staffed, name, {**fleet.P5, **resources})
            staffed.kubectl("label", "node", name, f"site/test={jobs}")
            alive(staffed, name)
            if proven:
                staffed.kubectl("taint", "node", name, f"{contract.KUBE_STARTUP_TAINT}-")
        return names

    yield make
    for name in made:
        staffed.kubectl("delete", "node", name, "--wait=false", "--ignore-not-found")


def alive(plane, name):
    plane.until(lambda: fleet.alive(plane.node(name)), f"{name} is ready")


def pod_spec(jobs, gpus=8, efas=32):
    held = {contract.KUBE_GPU_RESOURCE: str(gpus), contract.KUBE_EFA_RESOURCE: str(efas)}
    return {
        "nodeSelector": {"site/test": jobs},
        "restartPolicy": "Never",
        "containers": [{"name": "x", "image": "x", "resources": {"limits": held}}],
    }


def pod(plane, jobs, name, **wanted):
    plane.apply(made("Pod", name, jobs, spec=pod_spec(jobs, **wanted)))


def pods(plane, namespace, selector=""):
    """Name -> pod, without those that end."""
    path = f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}"
    found = plane.ask("GET", path)["items"]
    return {one["metadata"]["name"]: one for one in found if not one["metadata"].get("deletionTimestamp")}


def placed(plane, namespace, selector=""):
    """Running pod -> node."""
    found = pods(plane, namespace, selector).items()
    return {name: one["spec"]["nodeName"] for name, one in found if one["status"]["phase"] == "Running"}


def held(plane, namespace, name, why):
    """Wait until the scheduler has said why a pod waits; it is on no node."""

    def said():
        one = pods(plane, namespace)[name]
        assert "nodeName" not in one["spec"], one["spec"]["nodeName"]
        unplaced = [c for c in one["status"].get("conditions") or [] if c["type"] == "PodScheduled"]
        return bool(unplaced) and why in unplaced[0].get("message", "")

    plane.until(said, f"{name} waits: {why}")


def test_a_gpu_pod_waits_for_the_agents_go_and_leaves_an_unclean_node_alone(staffed, jobs, tmp_path, capsys):
    node = KubeNode(staffed, jobs[-40:].strip("-"), tmp_path)
    try:
        node.register(kwok=fleet.P5)
        staffed.kubectl("label", "node", node.name, f"site/test={jobs}")
        alive(staffed, node.name)
        pod(staffed, jobs, "rank-0", gpus=4, efas=16)
        held(staffed, jobs, "rank-0", "untolerated taint")
        began = time.monotonic()
        node.watch().join()
        staffed.until(lambda: not node.taints(), "the agent says go")
        proven = time.monotonic()
        staffed.until(lambda: placed(staffed, jobs) == {"rank-0": node.name}, "it runs there")
        running = time.monotonic()
        ready([node.watched])
        node.watched.say(fleet.XID)
        staffed.until(lambda: contract.KUBE_FAULT_TAINT in node.taints(), "a fault taints")
        pod(staffed, jobs, "rank-1", gpus=4, efas=16)
        held(staffed, jobs, "rank-1", "untolerated taint")
        assert placed(staffed, jobs) == {"rank-0": node.name}, "the running pod stays"
    finally:
        node.down()
        staffed.kubectl("delete", "node", node.name, "--wait=false", "--ignore-not-found")
    with capsys.disabled():
        sys.stderr.write(f"\njoin to schedulable {proven - began:.1f} s, to a running pod {running - began:.1f} s\n")


def test_a_cordon_keeps_pods_away_until_it_is_lifted(staffed, jobs, nodes):
    (name,) = nodes(1)
    healing = scheduler(staffed)
    healing.drain(name, REASON)
    pod(staffed, jobs, "rank-0")
    held(staffed, jobs, "rank-0", "were unschedulable")
    healing.resume(name)
    staffed.until(lambda: placed(staffed, jobs) == {"rank-0": name}, "it runs")


def test_a_node_that_offers_a_gpu_less_gets_no_pod_of_a_whole_node(staffed, jobs, nodes):
    nodes(1, **{contract.KUBE_GPU_RESOURCE: "7"})
    pod(staffed, jobs, "rank-0")
    held(staffed, jobs, "rank-0", f"Insufficient {contract.KUBE_GPU_RESOURCE}")


def scheduler(plane):
    return KubernetesScheduler(plane.client)


def work(plane, jobs, kind="Job", count=1):
    """Somebody's Job or Deployment with whole nodes."""
    template = {"metadata": {"labels": {"app": "work"}}, "spec": pod_spec(jobs)}
    if kind == "Job":
        own = made(kind, "work", jobs, "batch/v1", spec={"parallelism": count, "completions": count})
    else:
        template["spec"].pop("restartPolicy")
        own = made(
            kind, "work", jobs, "apps/v1", spec={"replicas": count, "selector": {"matchLabels": {"app": "work"}}}
        )
    own["spec"]["template"] = template
    plane.apply(own)
    plane.until(lambda: len(placed(plane, jobs)) == count, f"the {kind} runs")
    return placed(plane, jobs)


def test_an_evicted_pod_of_a_job_comes_back_on_a_healthy_node(staffed, jobs, nodes, tmp_path):
    names = nodes(2)
    ((first, sick),) = work(staffed, jobs).items()
    (well,) = set(names) - {sick}
    world, clock, store = sick_world(tmp_path, sick, names), Clock(), tmp_path / "runs.sqlite"
    rounds(staffed, scheduler(staffed), world, store, clock, 4, [sick], requeue_after_min=1)
    staffed.until(lambda: list(placed(staffed, jobs).values()) == [well], "the Job has another pod, on the other node")
    assert first not in placed(staffed, jobs)
    rounds(staffed, scheduler(staffed), world, store, clock, 8, requeue_after_min=1)
    assert [line["what"] for line in world.effects()] == ["REBOOT", "judged", "release"]
    pod(staffed, jobs, "next")
    staffed.until(lambda: placed(staffed, jobs).get("next") == sick, "the healed node takes pods again")


def test_a_node_deleted_while_healing_is_not_repaired_and_its_job_goes_on_elsewhere(staffed, jobs, nodes, tmp_path):
    names = nodes(2)
    ((first, sick),) = work(staffed, jobs).items()
    (well,) = set(names) - {sick}
    world, clock, store = sick_world(tmp_path, sick, names), Clock(), tmp_path / "runs.sqlite"
    rounds(staffed, scheduler(staffed), world, store, clock, 2, [sick])
    assert scheduler(staffed).place(sick).ours
    staffed.kubectl("delete", "node", sick)
    said = rounds(staffed, scheduler(staffed), world, store, clock, 2)
    assert not world.effects() and any("no such Node any more" in line for line in said), said
    staffed.until(lambda: list(placed(staffed, jobs).values()) == [well], "its pod is collected, the Job has another")
    assert first not in placed(staffed, jobs)


def test_a_budget_counted_by_its_controller_holds_the_only_replica_and_lets_one_of_two_go(staffed, jobs, nodes):
    nodes(2)
    ((only, _),) = work(staffed, jobs, "Deployment").items()
    path = keep_one(staffed, jobs, "work")

    def allowed():
        found = staffed.ask("GET", path)
        counted = found["status"].get("observedGeneration") == found["metadata"]["generation"]
        return found["status"]["disruptionsAllowed"] if counted else None

    staffed.until(lambda: allowed() == 0, "it is counted")
    with pytest.raises(KubernetesError, match="disruption budget"):
        scheduler(staffed).requeue(f"{jobs}/{only}")
    assert only in placed(staffed, jobs)
    staffed.kubectl("scale", "-n", jobs, "deployment/work", "--replicas=2")
    staffed.until(lambda: len(placed(staffed, jobs)) == 2 and allowed() == 1, "two run, one may go")
    scheduler(staffed).requeue(f"{jobs}/{only}")
    staffed.until(lambda: only not in placed(staffed, jobs) and len(placed(staffed, jobs)) == 2, "another in its place")


def render(staffed, place, *words):
    """`flightline kube` and `kubectl apply`, as docs/kubernetes.md has them; the objects, and the seconds of both."""
    (place / "outputs.json").write_text(json.dumps({**fleet.OUTPUTS, "results_table": "t", "results_bucket": "b-1"}))
    began = time.monotonic()
    given = ["--outputs", str(place / "outputs.json"), "--out", str(place / "manifests"), *words]
    done = CliRunner().invoke(kube.command, given)
    assert done.exit_code == 0, done.output
    rendered = time.monotonic()

    def applied():
        said = staffed.kubectl("apply", "--server-side", "-f", str(place / "manifests"), check=False)
        assert "denied" not in said, said
        return all(line.endswith("serverside-applied") for line in said.splitlines() if not line.startswith("Warning:"))

    staffed.until(applied, "every manifest is applied")
    took = rendered - began, time.monotonic() - rendered
    texts = [path.read_text() for path in sorted((place / "manifests").iterdir())]
    return [one for text in texts for one in yaml.safe_load_all(text) if one], took


@pytest.fixture(scope="module")
def written(staffed, tmp_path_factory):
    """Agent, control side and training run; before them the definitions of others, and JobSet's controller."""
    for kind in FOREIGN:
        define(staffed, kind)
    staffed.jobset()
    images = ["--training-image", DECIDED["training_image"], "--control-image", DECIDED["control_image"]]
    return render(staffed, tmp_path_factory.mktemp("manifests"), *images)


def of_kind(written, kind):
    return next(one for one in written[0] if one["kind"] == kind)


def test_the_manifests_pods_land_where_they_should_and_the_nightly_job_is_made(staffed, written, jobs, nodes):
    """Unproven GPU nodes get the agent and nothing else; the control side runs on a node without GPUs."""
    unproven = nodes(2, proven=False)
    (plain,) = nodes(1, proven=False)
    staffed.kubectl("label", "node", plain, f"{contract.KUBE_GPU_LABEL}-")
    staffed.kubectl("taint", "node", plain, f"{contract.KUBE_STARTUP_TAINT}-")
    own = contract.KUBE_NAMESPACE
    agents = f"app.kubernetes.io/name={contract.KUBE_AGENT}"
    staffed.until(lambda: set(unproven) <= set(placed(staffed, own, agents).values()), "the agents are there")
    staffed.until(lambda: plain not in placed(staffed, own, agents).values(), "and on no node without the label")
    healing = "app.kubernetes.io/name=flightline-remediate"
    staffed.until(lambda: list(placed(staffed, own, healing).values()) == [plain], "healing runs")
    nightly = of_kind(written, "CronJob")
    assert nightly["spec"]["schedule"] == "15 3 * * *"
    now = {"spec": {"schedule": "* * * * *"}}
    staffed.kubectl("patch", "cronjob", "-n", own, nightly["metadata"]["name"], "-p", json.dumps(now))

    def made():
        found = [name for name in placed(staffed, own) if name.startswith(nightly["metadata"]["name"])]
        return [placed(staffed, own)[name] for name in found]

    staffed.until(lambda: made() == [plain], "its controller made the Job, and its pod runs")
    staffed.kubectl("patch", "cronjob", "-n", own, nightly["metadata"]["name"], "-p", '{"spec": {"suspend": true}}')


def test_the_training_run_lands_on_proven_nodes_alone_and_begins_again_when_healing_evicts(
    staffed, written, jobs, nodes, capsys
):
    """Nobody makes the pods but JobSet's and Kubernetes' controllers."""
    where, of = f"namespaces/{TRAINING}", "jobset.sigs.k8s.io/jobset-name=train"

    def run():
        return staffed.ask("GET", f"/apis/jobset.x-k8s.io/v1alpha2/{where}/jobsets/train")["status"]

    def ranks():
        found = placed(staffed, TRAINING, of)
        return found if len(found) == 4 else {}

    nodes(1, proven=False)
    (waiting, *_) = pods(staffed, TRAINING, of)
    held(staffed, TRAINING, waiting, "untolerated taint")
    began = time.monotonic()
    proven = nodes(4)
    there = time.monotonic()
    staffed.until(ranks, "the run is placed")
    took = time.monotonic() - there
    first = ranks()
    assert sorted(first.values()) == sorted(proven)
    used = staffed.ask("GET", f"/api/v1/{where}/resourcequotas/training")["status"]["used"]
    counted = (used[f"requests.{contract.KUBE_GPU_RESOURCE}"], used[f"requests.{contract.KUBE_EFA_RESOURCE}"])
    assert counted == ("32", "128"), "the quota is counted by its controller"
    assert staffed.ask("GET", f"/api/v1/{where}/persistentvolumeclaims/fsx")["status"]["phase"] == "Bound"

    rank, sick = sorted(first.items())[0]
    (spare,) = nodes(1)
    scheduler(staffed).drain(sick, REASON)
    scheduler(staffed).requeue(f"{TRAINING}/{rank}")
    again = sorted({*proven, spare} - {sick})
    staffed.until(lambda: sorted(ranks().values()) == again and not set(ranks()) & set(first), "all four ranks are new")
    staffed.until(lambda: run().get("restarts") == 1, "JobSet began again once")
    assert not run().get("restartsCountTowardsMax"), "an eviction costs none of the run's restarts"
    staffed.kubectl("delete", "jobset", "-n", TRAINING, "train")
    with capsys.disabled():
        sys.stderr.write(
            f"\nflightline kube {written[1][0]:.1f} s, kubectl apply {written[1][1]:.1f} s, 4 nodes made, ready and proven in "
            f"{there - began:.1f} s, 4 training pods run {took:.1f} s after\n"
        )


def test_the_service_lands_on_a_proven_node_alone(staffed, written, jobs, nodes, tmp_path):
    words = ["--serving-image", DECIDED["serving_image"], "--serving-model", "/fsx/models/m", "--serving-gpus", "4"]
    staffed.kubectl("delete", "jobset", "-n", TRAINING, "train", "--ignore-not-found")  # it may have the whole quota
    nodes(1, proven=False)
    render(staffed, tmp_path, "--part", "serving", *words)
    of = "app.kubernetes.io/name=vllm"
    staffed.until(lambda: pods(staffed, TRAINING, of), "its Deployment made a pod")
    (waiting,) = pods(staffed, TRAINING, of)
    held(staffed, TRAINING, waiting, "untolerated taint")
    (well,) = nodes(1)
    staffed.until(lambda: placed(staffed, TRAINING, of) == {waiting: well}, "it runs")
