"""What the manifests say; that the API server takes them is in tests/kubernetes."""

import json
import re

import pytest

from flightline import contract
from flightline.kubernetes import render, site
from flightline_node.model import SettingsError

OUTPUTS = {
    "cluster_name": "demo",
    "region": "us-east-1",
    "instance_type": "p5.48xlarge",
    "node_count": "4",
    "efa_count": 32,
    "checkpoints_url": "s3://demo-checkpoints/",
}


def objects(**decided):
    return [one for part in render.parts(site.of_outputs(OUTPUTS, **decided)).values() for one in part]


def one(kind, **decided):
    return next(found for found in objects(**decided) if found["kind"] == kind)


def test_no_part_of_the_agent_can_be_scheduled_away_by_a_taint_and_it_lands_on_gpu_nodes_alone():
    pod = one("DaemonSet")["spec"]["template"]["spec"]
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["nodeSelector"] == {contract.KUBE_GPU_LABEL: contract.KUBE_LABEL_TRUE}


def test_nothing_else_tolerates_the_startup_or_the_fault_taint():
    pods = [one("JobSet", training_image="x")["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]]
    for pod in pods:
        for tolerated in pod["tolerations"]:
            assert tolerated["key"] not in (contract.KUBE_STARTUP_TAINT, contract.KUBE_FAULT_TAINT)


def test_a_change_of_settings_is_another_name_and_so_a_rolling_update():
    def named(**decided):
        return {found["metadata"]["name"] for found in objects(**decided) if found["kind"] == "ConfigMap"}

    assert named() == named()
    assert len(named() ^ named(settings={"skip": ["disk_space"]})) == 2


def test_the_training_run_takes_whole_nodes_within_the_quota():
    job = one("JobSet", training_image="x")["spec"]["replicatedJobs"][0]["template"]["spec"]
    limits = job["template"]["spec"]["containers"][0]["resources"]["limits"]
    hard = one("ResourceQuota")["spec"]["hard"]
    for resource in (contract.KUBE_GPU_RESOURCE, contract.KUBE_EFA_RESOURCE):
        assert int(hard[f"requests.{resource}"]) == job["parallelism"] * int(limits[resource])
    assert "JobSet" not in {found["kind"] for found in objects()}, "no image, no run"


def test_a_site_without_efa_asks_for_none():
    wanted = site.of_outputs({**OUTPUTS, "efa_count": 0}, training_image="x")
    text = json.dumps(render.parts(wanted, ("namespaces", "training")))
    assert contract.KUBE_EFA_RESOURCE not in text and "hugepages" not in text


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"region": ""}, "without region"),
        ({"node_count": "many"}, "whole number"),
        ({"instance_type": "p5.49xlarge"}, "p5.49xlarge"),
        ({"instance_type": "trn1.32xlarge"}, "without NVIDIA GPUs"),
        ({"checkpoints_url": "demo"}, "s3://"),
    ],
)
def test_outputs_of_no_use_are_said(change, word):
    with pytest.raises(SettingsError, match=word):
        site.of_outputs({**OUTPUTS, **change})


@pytest.mark.parametrize("settings", [{"cluster_name": "x"}, {"checks": ["no_such_check"]}, {"level": "deepest"}])
def test_settings_that_nodes_would_refuse_are_refused_here(settings):
    with pytest.raises(SettingsError):
        objects(settings=settings)


WITH_TABLE = {**OUTPUTS, "results_table": "demo-results"}
EVERYTHING = {
    "training_image": "x",
    "control_image": "x",
    "serving_image": "x",
    "serving_model": "m",
    "serving_gpus": 4,
}


def test_the_same_run_as_a_trainjob_begins_again_for_the_same_reasons():
    wanted = site.of_outputs(OUTPUTS, training_image="x", training_kind="trainjob")
    kinds = {found["kind"]: found for found in render.parts(wanted)["training"]}
    assert "JobSet" not in kinds, "both would want all nodes"
    runtime = kinds["TrainingRuntime"]["spec"]
    job = runtime["template"]["spec"]["replicatedJobs"][0]["template"]
    assert job["metadata"]["labels"] == {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["name"] == "node", "by which Kubeflow finds the trainer"
    assert container["command"] == ["torchrun", "-m", "training.job"], "the group comes from Kubeflow's environment"
    jobset = one("JobSet", training_image="x")["spec"]
    assert runtime["template"]["spec"]["failurePolicy"] == jobset["failurePolicy"]
    (rule,) = jobset["failurePolicy"]["rules"]
    assert re.fullmatch(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", rule["name"]), "or JobSet's webhook refuses the run"
    assert job["spec"]["podFailurePolicy"]["rules"][1]["onExitCodes"]["containerName"] == "node"
    assert kinds["TrainJob"]["spec"]["trainer"] == {"numNodes": 4, "numProcPerNode": 8}


def test_the_control_side_needs_an_image_and_the_stacks_table():
    def kinds(outputs, **decided):
        return {found["kind"] for found in render.parts(site.of_outputs(outputs, **decided)).get("control", [])}

    assert kinds(WITH_TABLE) == set()
    assert kinds(WITH_TABLE, control_image="x") == {"Role", "RoleBinding", "CronJob", "Deployment"}
    assert "Deployment" not in kinds(WITH_TABLE, control_image="x", heal="off")
    with pytest.raises(SettingsError, match="saw outputs without results_table"):
        kinds(OUTPUTS, control_image="x")


def test_only_the_control_sides_pods_have_a_token_and_nothing_of_ours_tolerates_a_taint_but_the_agent():
    parts = render.parts(site.of_outputs(WITH_TABLE, **EVERYTHING))
    for name in ("training", "serving", "control"):
        for pod in found_pods(parts[name]):
            assert pod["automountServiceAccountToken"] is (name == "control")
            assert all(one["key"] == contract.KUBE_GPU_RESOURCE for one in pod.get("tolerations", []))


def found_pods(value):
    """Every pod's spec in these objects."""
    if isinstance(value, dict):
        yield from [value] if "containers" in value else [pod for part in value.values() for pod in found_pods(part)]
    if isinstance(value, list):
        yield from (pod for part in value for pod in found_pods(part))


def test_the_service_scales_within_the_gpus_and_a_replica_fits_a_node():
    found = {
        found["kind"]: found["spec"] for found in render.parts(site.of_outputs(WITH_TABLE, **EVERYTHING))["serving"]
    }
    assert found["HorizontalPodAutoscaler"]["maxReplicas"] == 4 * 8 // 4
    assert "replicas" not in found["Deployment"], "they are the autoscaler's"
    (container,) = found["Deployment"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"][contract.KUBE_GPU_RESOURCE] == "4"
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(container)
    with pytest.raises(SettingsError, match="saw 16 GPUs for a replica"):
        site.of_outputs(OUTPUTS, serving_image="x", serving_model="m", serving_gpus=16)
    with pytest.raises(SettingsError, match="without --serving-model"):
        site.of_outputs(OUTPUTS, serving_image="x")


def test_a_claim_orders_no_file_system():
    fsx = {"fsx_dns_name": "fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com", "fsx_mount_name": "abcd1234"}
    found = {found["kind"]: found for found in render.parts(site.of_outputs({**OUTPUTS, **fsx}))["training"]}
    assert found["StorageClass"]["provisioner"] == "kubernetes.io/no-provisioner"
    name = found["StorageClass"]["metadata"]["name"]
    assert {found[kind]["spec"]["storageClassName"] for kind in ("PersistentVolume", "PersistentVolumeClaim")} == {name}
