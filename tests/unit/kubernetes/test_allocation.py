"""Which pods have GPUs, by kubelet's checkpoint. Hand-written after its source; none was recorded on a node."""

import json

import pytest

from flightline_node.kubernetes.allocation import CHECKPOINT, PODS, why_not_idle


def root(path, *entries, running=()):
    file = path / CHECKPOINT
    file.parent.mkdir(parents=True)
    rows = [
        {"PodUID": uid, "ContainerName": "c", "ResourceName": resource, "DeviceIDs": {"0": ["GPU-1"]}}
        for uid, resource in entries
    ]
    file.write_text(json.dumps({"Data": {"PodDeviceEntries": rows or None, "RegisteredDevices": {}}, "Checksum": 1}))
    for uid in running:
        (path / PODS / uid).mkdir(parents=True)
    return str(path)


def test_no_pod_has_gpus(tmp_path):
    assert why_not_idle(root(tmp_path)) == ""


def test_a_running_pod_has_them(tmp_path):
    assert why_not_idle(root(tmp_path, ("u1", "nvidia.com/gpu"), running=["u1"])) == "pod u1 has GPUs"


def test_a_mig_slice_and_a_neuron_device_count(tmp_path):
    assert why_not_idle(
        root(tmp_path, ("u1", "nvidia.com/mig-1g.5gb"), ("u2", "aws.amazon.com/neuron"), running=["u1", "u2"])
    )


def test_an_entry_that_outlived_its_pod_and_other_resources_do_not(tmp_path):
    assert why_not_idle(root(tmp_path, ("u1", "nvidia.com/gpu"), ("u2", "vpc.amazonaws.com/efa"), running=["u2"])) == ""


@pytest.mark.parametrize("text", ["", "{", "[]", '{"Data": {}}', '{"Data": {"PodDeviceEntries": [{}]}}'])
def test_what_cannot_be_read_is_no_permission(tmp_path, text):
    (tmp_path / CHECKPOINT).parent.mkdir(parents=True)
    (tmp_path / CHECKPOINT).write_text(text)
    assert "cannot be read" in why_not_idle(str(tmp_path))


def test_no_checkpoint_is_no_permission(tmp_path):
    assert "cannot be read" in why_not_idle(str(tmp_path))
