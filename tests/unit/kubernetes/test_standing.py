"""What stands of a node after a word, and what that makes of its Node. The API server itself is in tests/kubernetes."""

import json

import pytest

from flightline import contract
from flightline_node.kubernetes import names, standing
from flightline_node.kubernetes.standing import GO, NO_GO, UNPROVEN, Standing

OURS = {"key": names.STARTUP_TAINT, "effect": "NoSchedule"}
FAULT = {"key": names.FAULT_TAINT, "effect": "NoSchedule"}
OTHERS = {"key": "site/maintenance", "effect": "NoSchedule", "value": "rack-7"}
FOREIGN_EFFECT = {"key": names.FAULT_TAINT, "effect": "NoExecute"}


def word(verdict, level="quick", at="2026-11-23T10:00:00.000Z", boot="b1"):
    return Standing(verdict, level, "run-1", at, boot, "why")


def node(*taints, **annotations):
    meta = {"name": "gpu-07", "uid": "u-1", "resourceVersion": "7", "annotations": annotations}
    return {"metadata": meta, "spec": {"taints": list(taints)}}


def test_the_node_librarys_names_are_the_contracts():
    assert names.STARTUP_TAINT == contract.KUBE_STARTUP_TAINT and names.FAULT_TAINT == contract.KUBE_FAULT_TAINT
    assert names.EFFECT == contract.KUBE_TAINT_EFFECT and names.CONDITION == contract.KUBE_CONDITION
    assert names.VERDICT_LABEL == contract.KUBE_VERDICT_LABEL and names.LEVEL_LABEL == contract.KUBE_LEVEL_LABEL
    assert names.COMPONENT == contract.KUBE_AGENT


@pytest.mark.parametrize(
    ("before", "now", "after"),
    [
        (None, word(UNPROVEN), UNPROVEN),
        (word(UNPROVEN), word(GO, at="2026-11-23T10:05:00Z"), GO),
        (word(GO), word(NO_GO), NO_GO),
        (word(NO_GO), word(GO, at="2026-11-23T10:05:00Z"), GO),
        (word(NO_GO), word(GO, at="2026-11-23T09:59:59.999Z"), NO_GO),  # it began to look before the fault
        (word(NO_GO), word(GO, at="yesterday"), NO_GO),
        (word(NO_GO, "standard"), word(GO, "quick", "2026-11-23T10:05:00Z"), NO_GO),
        (word(NO_GO, "standard"), word(GO, "standard", "2026-11-23T10:05:00Z"), GO),
        (word(NO_GO), word(UNPROVEN, boot="b2"), NO_GO),  # a reboot heals nothing
    ],
)
def test_what_stands_after_a_word(before, now, after):
    assert standing.settled(before, now).verdict == after


def test_a_no_go_keeps_the_deeper_level_that_has_to_prove_it():
    assert standing.settled(word(NO_GO, "standard"), word(NO_GO, "quick")).level == "standard"


def test_a_reboot_is_noted_also_of_an_unclean_node():
    assert standing.settled(word(NO_GO), word(UNPROVEN, boot="b2")).boot == "b2"


@pytest.mark.parametrize(
    ("there", "verdict", "after"),
    [
        ([OURS], GO, []),
        ([OURS, OTHERS, FAULT], GO, [OTHERS]),
        ([OURS, OTHERS], NO_GO, [OURS, OTHERS, FAULT]),
        ([FAULT], NO_GO, [FAULT]),
        ([OTHERS], UNPROVEN, [OTHERS, OURS]),
        ([FOREIGN_EFFECT], GO, [FOREIGN_EFFECT]),
    ],
)
def test_taints(there, verdict, after):
    assert standing.taints(node(*there), word(verdict)) == after


def test_a_write_names_the_node_that_was_read():
    found = standing.patch(node(OURS), word(GO))
    assert found["metadata"]["uid"] == "u-1" and found["metadata"]["resourceVersion"] == "7"
    assert found["spec"] == {"taints": None}
    assert standing.read({"metadata": {"annotations": found["metadata"]["annotations"]}}) == word(GO)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"verdict": "go"}', json.dumps({**vars(word(GO)), "verdict": "fine"})]
)
def test_an_annotation_that_is_no_standing_is_none(text):
    assert standing.read(node(**{names.STANDING: text})) is None


def test_the_conditions_transition_moves_only_with_its_status():
    before = {"type": names.CONDITION, "status": "True", "lastTransitionTime": "2026-11-23T09:00:00Z"}
    there = {**node(), "status": {"conditions": [before]}}
    now = "2026-11-23T10:00:00Z"
    assert (
        standing.condition(there, word(GO), now)["status"]["conditions"][0]["lastTransitionTime"]
        == "2026-11-23T09:00:00Z"
    )
    assert standing.condition(there, word(NO_GO), now)["status"]["conditions"][0]["lastTransitionTime"] == now
