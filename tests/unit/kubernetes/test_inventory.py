"""The inventory of a cluster's nodes: who is in it, and what is known of each."""

import pytest

from flightline import contract
from flightline.kubernetes import inventory
from flightline_node.model import SettingsError


def node(name, kind="p5.48xlarge", instance="i-0abc", **labels):
    own = {contract.KUBE_TYPE_LABEL: kind} if kind else {}
    return {
        "metadata": {"name": name, "labels": {**own, **labels}},
        "spec": {"providerID": f"aws:///us-east-1a/{instance}"} if instance else {},
        "status": {"addresses": [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": "10.0.0.7"}]},
    }


def made(*nodes):
    return inventory.of_nodes(nodes)["all"]


def test_gpu_nodes_by_label_or_type_and_nobody_else():
    labelled = node("b", kind="", **{contract.KUBE_GPU_LABEL: "true"})
    found = made(labelled, node("a"), node("cpu", kind="m7i.large"), node("odd", kind=""))
    assert list(found["hosts"]) == ["a", "b"], "one that nobody labelled has no agent, which is a row that says so"
    assert "instance_type" not in found["hosts"]["b"], "never guessed: validation asks for it"
    assert found["vars"] == {"flightline_via": "kubernetes"}


def test_a_host_has_its_type_instance_address_and_place():
    layers = {f"topology.k8s.aws/network-node-layer-{n}": f"nn-{n}" for n in (1, 2, 3)}
    zone = {inventory.ZONE_LABEL: "us-east-1a"}
    found = made(node("a", **layers, **zone), node("b", **zone), node("c", instance=""))
    assert found["hosts"]["a"] == {
        "instance_type": "p5.48xlarge",
        "instance_id": "i-0abc",
        "node_address": "10.0.0.7",
        "flightline_place": "nn-3",
    }
    assert found["hosts"]["b"]["flightline_place"] == "us-east-1a"
    assert not {"flightline_place", "instance_id"} & set(found["hosts"]["c"])
    assert set(found["children"]["zone_us_east_1a"]["hosts"]) == {"a", "b"}
    assert set(found["children"]["type_p5_48xlarge"]["hosts"]) == set(found["children"]["gpu_nodes"]["hosts"])


def test_a_node_of_a_family_that_has_no_row_yet_is_not_left_out():
    assert set(made(node("a"), node("b", kind="p6e-gb300.36xlarge"), node("c", kind="trn3pd98.3xlarge"))["hosts"]) == {
        "a",
        "b",
        "c",
    }


def test_a_cluster_without_gpu_nodes_is_no_verdict():
    with pytest.raises(SettingsError, match="saw 1 nodes in the cluster and no GPU node"):
        made(node("cpu", kind="m7i.large"))
