"""No destroy by mistake deletes anything of a stack that keeps data, and the right ones delete no data.

The engine is a model (tests/infra/guarding/destroy.py) over every resource that the program registers.
"""

from dataclasses import replace

import pytest

from infra.policies.data_protection import COMPANIONS, DATA
from tests.infra import program
from tests.infra.guarding import destroy

KEEPING = ("spot", "eks", "full")
"""The least there is, another kind of nodes, and everything."""
LOCKS = ("policies", "lock")


def urns(requests, names):
    return {one.urn for one in requests if one.name in names and one.type_.startswith("flightline:policy:")}


def without_locks(requests):
    """The same stack as it was without its locks."""
    return [replace(one, protect=False) if one.name in LOCKS else one for one in requests]


@pytest.mark.parametrize("name", KEEPING)
def test_a_destroy_without_a_preview_deletes_nothing(name):
    requests = program.example(name).requests
    assert destroy.deleted(requests) == frozenset()
    assert len(destroy.deleted(without_locks(requests))) > 20, "without locks it would: the model sees the difference"


@pytest.mark.parametrize("name", KEEPING)
def test_nor_when_the_nodes_are_gone(name):
    requests = program.example(name).requests
    nodes = {one.urn for one in requests if one.name in ("nodes-group", "head-instance")}
    gone = destroy.above(requests, nodes)
    left = [one for one in requests if one.urn not in gone]
    assert [one.name for one in left if one.name in LOCKS] == ["lock"], "the ground has its own"
    lost = [one.name for one in left if one.urn in destroy.deleted(left)]
    assert [name for name in lost if not name.startswith(("nodes", "head"))] == [], "but for what nodes leave behind"


@pytest.mark.parametrize("name", KEEPING)
def test_down_deletes_all_but_the_data_and_what_it_lies_in(name):
    requests = program.example(name).requests
    gone = destroy.deleted(requests, urns(requests, LOCKS), exclude_protected=True)
    left = [one for one in requests if one.urn not in gone and one.custom]
    assert {one.type_ for one in left if one.type_ in DATA} == {one.type_ for one in requests if one.type_ in DATA}
    lies_in = {one.name for one in left if one.type_ not in (*DATA, *COMPANIONS) and not one.protect}
    wanted = {"logs-fsx", "network-vpc", "network-private-1", "lustre-group"} if name == "full" else set()
    assert wanted <= lies_in and not {"nodes-group", "network-nat-1", "functions-storage"} & lies_in


def test_a_stack_that_keeps_nothing_has_no_closed_lock():
    requests = program.run("dev", changes={"keepData": False}).requests
    assert [one.name for one in requests if one.protect] == []
    assert len(destroy.deleted(requests)) == len(requests)


def test_with_idle_scale_in_the_alarms_go_with_the_nodes_and_the_rest_is_locked():
    requests = program.run("spot", changes={"gpuIdleHours": 2, "gpuIdleScaleIn": True}).requests
    (group,) = [one.urn for one in requests if one.name == "nodes-group"]
    gone = destroy.above(requests, {group})
    left = [one for one in requests if one.urn not in gone]
    assert [one.name for one in left if one.name in LOCKS] == ["lock"]
    lost = [one.name for one in left if one.urn in destroy.deleted(left)]
    assert [name for name in lost if not name.startswith(("nodes", "monitoring"))] == []
