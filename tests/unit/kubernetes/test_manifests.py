"""What the manifests say; that the API server takes them is in tests/kubernetes."""

import json

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
