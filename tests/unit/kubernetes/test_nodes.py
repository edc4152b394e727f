"""What kubectl lists: objects that can be read, or a word on what it is instead."""

import json

import pytest

from flightline.kubernetes import nodes

NODE = {"metadata": {"name": "a", "labels": {"k": "v"}, "annotations": None}, "spec": {}}


def test_nodes_and_pods_are_given_as_they_are():
    pod = {
        "metadata": {"name": "p", "namespace": "n", "ownerReferences": [{"name": "job"}]},
        "spec": {"volumes": [{"name": "library", "configMap": {"name": "x"}}], "containers": [{"resources": {}}]},
        "status": {"phase": "Running"},
    }
    assert nodes.listed(json.dumps({"items": [NODE, pod]})) == [NODE, pod]
    assert nodes.listed(b'{"items": []}') == []


@pytest.mark.parametrize(
    "text", ["", "Unable to connect", "null", "[]", "{}", '{"items": null}', '{"items": 7}', "[" * 9999]
)
def test_what_is_no_list_is_said(text):
    with pytest.raises(ValueError):
        nodes.listed(text)


@pytest.mark.parametrize(
    "part",
    [
        {"metadata": None},
        {"metadata": {}},
        {"metadata": {"name": 7}},
        {"metadata": {"name": "a", "labels": ["k"]}},
        {"metadata": {"name": "a", "labels": {"k": 7}}},
        {"metadata": {"name": "a", "ownerReferences": {}}},
        {"spec": None},
        {"spec": {"taints": [7]}},
        {"spec": {"volumes": [{"name": 7}]}},
        {"spec": {"containers": [{"resources": {"limits": 8}}]}},
        {"status": []},
        {"status": {"addresses": [{"type": "InternalIP", "address": 7}]}},
    ],
)
def test_an_object_of_another_kind_is_no_object(part):
    with pytest.raises(ValueError, match="the object 2 of 2"):
        nodes.listed(json.dumps({"items": [NODE, {**NODE, **part}]}))


@pytest.mark.parametrize("one", [7, "a", None, []])
def test_what_is_no_object_at_all_is_said(one):
    with pytest.raises(ValueError, match="the object 1 of 1"):
        nodes.listed(json.dumps({"items": [one]}))
