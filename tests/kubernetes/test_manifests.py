"""Every manifest is applied server-side and strictly. Checked by Kubernetes' own schemas: all but these.

JobSet, TrainJob and its runtime, PodMonitor, PrometheusRule: by their own CustomResourceDefinitions, from the Go registry.
"""

import json
import re
import subprocess
from functools import partial

import pytest
import yaml

from flightline import contract
from flightline.kubernetes import agent, monitoring, render, site, training
from flightline_node.kubernetes import metrics

from . import binaries, fleet
from .cluster import made

TRAINING = contract.KUBE_TRAINING_NAMESPACE
STRICTLY = ("--dry-run=server", "--validate=strict")
TRAINER = "github.com/kubeflow/trainer/v2@v2.2.0"
OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.91.0"
OPERATORS = "example/prometheus-operator-crd/monitoring.coreos.com"
FOREIGN = {
    "JobSet": (binaries.JOBSET, "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"),
    "TrainJob": (TRAINER, "manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml"),
    "TrainingRuntime": (TRAINER, "manifests/base/crds/trainer.kubeflow.org_trainingruntimes.yaml"),
    "PodMonitor": (OPERATOR, f"{OPERATORS}_podmonitors.yaml"),
    "PrometheusRule": (OPERATOR, f"{OPERATORS}_prometheusrules.yaml"),
}
"""Kind -> Go module and file of its definition."""
DECIDED = {
    "training_image": "registry.example/train:1",
    "control_image": "registry.example/flightline:1",
    "serving_image": "vllm/vllm-openai:v0.11.0",
    "serving_model": "/fsx/models/m",
    "serving_gpus": 4,
}


@pytest.fixture(scope="module")
def objects(plane):
    fleet.install(plane)
    outputs = {**fleet.OUTPUTS, "results_table": "demo-results", "results_bucket": "demo-results-1"}
    wanted = site.of_outputs(outputs, **DECIDED)
    by_kubeflow = training.manifests(site.of_outputs(outputs, **DECIDED, training_kind="trainjob"))
    rest = [one for one in by_kubeflow if one["kind"] in ("TrainJob", "TrainingRuntime")]
    return [*(one for part in render.parts(wanted).values() for one in part), *rest]


def test_what_kubernetes_knows_is_taken_strictly_and_twice_alike(plane, objects):
    known = [one for one in objects if one["kind"] not in FOREIGN]
    said = plane.apply(*known)
    assert len(said.splitlines()) == len(known) and "serverside-applied" in said
    before = [_stored(plane, one) for one in known]
    assert all(one["metadata"]["labels"]["app.kubernetes.io/part-of"] == "flightline" for one in before)
    plane.apply(*known)
    assert before == [_stored(plane, one) for one in known]


def _stored(plane, one):
    """As the server has it, without the stamps of its bookkeeping."""
    found = json.loads(plane.kubectl("get", "-o", "json", *_named(one)))
    for stamp in ("resourceVersion", "managedFields"):
        found["metadata"].pop(stamp, None)
    return found


def _named(one):
    where = one["metadata"].get("namespace")
    return [one["kind"], one["metadata"]["name"], *(["-n", where] if where else [])]


@pytest.mark.parametrize("kind", FOREIGN)
def test_what_others_define_is_taken_by_their_own_definition(plane, objects, kind):
    define(plane, kind)
    found = [one for one in objects if one["kind"] == kind]
    assert found
    for one in found:
        plane.until(lambda one=one: "serverside-applied" in _tried(plane, one), "it is applied")


def define(plane, kind):
    """Apply the definition of a kind, as its own project has it."""
    module, path = FOREIGN[kind]
    try:
        definition = yaml.safe_load((binaries.sources(module) / path).read_text())
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no {module} from the Go registry: {error.stderr or error.stdout}")
    definition["metadata"].pop("annotations", None)
    plane.apply(definition)


def _tried(plane, one):
    said = plane.kubectl("apply", "--server-side", "--validate=strict", "-f", "-", given=json.dumps(one), check=False)
    assert "unknown field" not in said and "invalid" not in said, said
    return said


def test_the_jobsets_job_is_taken_by_kubernetes_and_its_pod_by_pod_security(plane, objects):
    found = next(one for one in objects if one["kind"] == "JobSet")
    for part in found["spec"]["replicatedJobs"]:
        text = json.dumps(made("Job", "train", TRAINING, "batch/v1", spec=part["template"]["spec"]))
        said = plane.kubectl("apply", "--server-side", "--validate=strict", "--dry-run=server", "-f", "-", given=text)
        assert "serverside-applied" in said
        pod = made("Pod", "rank-0", TRAINING, spec=part["template"]["spec"]["template"]["spec"])
        assert "pod/rank-0 created" in plane.create(pod, *STRICTLY)
    (container, *_) = found["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"]
    assert training.JOB in container["command"][5]


def test_the_quota_refuses_more_gpus_than_the_stack_has(plane, objects):
    gpus = {"nvidia.com/gpu": "33"}
    containers = [{"name": "x", "image": "x", "resources": {"limits": gpus, "requests": gpus}}]
    pod = made(
        "Pod", "too-many", TRAINING, spec={"serviceAccountName": contract.KUBE_TRAINER, "containers": containers}
    )

    def said():
        return plane.create(pod, "--dry-run=server")

    plane.apply(*[one for one in objects if one["kind"] in ("Namespace", "ResourceQuota", "ServiceAccount")])
    quota = next(one for one in objects if one["kind"] == "ResourceQuota")["spec"]["hard"]
    counted = {"hard": quota, "used": dict.fromkeys(quota, "0")}  # as the controller manager counts
    plane.merge(f"/api/v1/namespaces/{TRAINING}/resourcequotas/training/status", {"status": counted})
    plane.until(lambda: "exceeded quota" in said(), "the quota is known")
    pod["spec"]["containers"][0]["resources"] = {}
    pod["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    assert 'violates PodSecurity "baseline' in said()


def test_rules_and_dashboard_ask_for_metrics_that_there_are():
    told = set(metrics.WHAT) | {"up", "node_infiniband_port_data_received_bytes_total"}
    asked = [one["expr"] for group in monitoring.rules()["groups"] for one in group["rules"]]
    asked += [target["expr"] for panel in monitoring.dashboard()["panels"] for target in panel["targets"]]
    named = {name for text in asked for name in re.findall(r"\b(?:flightline|node|DCGM)_\w+", text)}
    assert {name for name in named if not name.startswith("DCGM_FI_DEV_")} <= told
    assert agent.METRICS_PORT == 9817


def test_the_pods_of_control_side_and_service_are_taken_by_pod_security(plane, objects):
    """A Deployment is not refused for its pod, so the pod itself is asked for."""
    templates = {
        one["metadata"]["name"]: (one["metadata"]["namespace"], one["spec"]["template"]["spec"])
        for one in objects
        if one["kind"] == "Deployment"
    }
    nightly = next(one for one in objects if one["kind"] == "CronJob")
    job = nightly["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    templates["nightly"] = (nightly["metadata"]["namespace"], job)
    assert set(templates) == {"vllm", "flightline-remediate", "nightly"}
    plane.apply(*[one for one in objects if one["kind"] in ("Namespace", "ServiceAccount")])
    for name, (where, spec) in templates.items():
        pod = made("Pod", f"{name}-0", where, spec=spec)
        said = partial(plane.create, pod, *STRICTLY)
        plane.until(lambda said=said, name=name: f"pod/{name}-0 created" in said(), f"{name} is taken: {said()}")
