"""The agent's order of things, with a Node in memory; the API server itself is in tests/kubernetes."""

import copy
import time

import pytest

from flightline_node.kubernetes import api, names
from flightline_node.kubernetes.agent import AgentOptions, NodeAgent
from flightline_node.kubernetes.judging import Judged
from flightline_node.kubernetes.own_node import NodeUpdate
from flightline_node.kubernetes.standing import patch, read, settled

GO, NO_GO, NOT_RUN = 0, 1, 2


class MemoryNode:
    """As OwnNode, without a server. broken: what every request raises."""

    name = "gpu-07"

    def __init__(self):
        meta = {"name": self.name, "uid": "u-1", "resourceVersion": "7", "annotations": {}}
        self.node = {"metadata": meta, "spec": {"taints": [{"key": names.STARTUP_TAINT, "effect": "NoSchedule"}]}}
        self.told, self.doubts, self.broken = [], [], None

    def read(self):
        if self.broken:
            raise self.broken
        return copy.deepcopy(self.node)

    def tell(self, word):
        before = read(self.read())
        stands = settled(before, word)
        change = patch(self.node, stands)
        self.node["metadata"]["annotations"].update(change["metadata"]["annotations"])
        self.node["spec"]["taints"] = change["spec"]["taints"] or []
        self.told.append((stands.verdict, stands.level))
        return NodeUpdate(self.node, stands, True)

    def set_unknown(self, why):
        self.doubts.append(why)

    def taints(self):
        return {one["key"] for one in self.node["spec"]["taints"]}


class Day:
    """An agent with answers laid out for it."""

    def __init__(self, path, busy="", **options):
        self.own, self.busy, self.asked, self.status, self.slept = MemoryNode(), busy, [], GO, []
        self.taints_when_asked = []
        given = AgentOptions(directory=path, kmsg=str(path / "none"), settle_s=20.0, **options)
        self.agent = NodeAgent(given, self.own, "b1", self.judge, lambda: self.busy, self.slept.append)

    def judge(self, level, run):
        time.sleep(0.005)  # a go counts when it began after what it lifts, to the millisecond
        self.asked.append(level)
        self.taints_when_asked.append(self.own.taints())
        return Judged(self.status, "why", {})

    def round(self):
        self.agent._due = 0.0
        self.agent.step()
        return self


@pytest.fixture
def day(tmp_path):
    return Day(tmp_path, standard_every_s=3600.0)


def test_it_is_judged_at_once_and_the_go_takes_the_taint(day):
    day.round()
    assert day.asked == ["quick"] and day.own.taints() == set()


def test_level_standard_runs_behind_the_startup_taint_and_waits_for_pods_that_were_bound_before(day):
    day.round()
    day.agent._deep_due = 0.0
    day.round()
    assert day.asked == ["quick", "standard"] and day.slept == [20.0]
    assert day.taints_when_asked[-1] == {names.STARTUP_TAINT} and day.own.taints() == set()


def test_level_standard_waits_while_a_pod_has_gpus(day):
    day.round()
    day.agent._deep_due, day.busy = 0.0, "pod u1 has GPUs"
    day.round()
    assert day.asked == ["quick", "quick"] and not day.slept


def test_a_pod_that_came_meanwhile_puts_level_standard_off_and_the_node_back(day, monkeypatch):
    day.round()
    day.agent._deep_due = 0.0
    day.agent._sleep = lambda _: setattr(day, "busy", "pod u1 has GPUs")
    day.round()
    assert day.asked[-1] == "quick" and day.own.taints() == set()


def test_what_level_standard_found_only_level_standard_lifts(day):
    day.round()
    day.agent._deep_due, day.status = 0.0, NO_GO
    day.round()
    assert names.FAULT_TAINT in day.own.taints()
    day.status, day.busy = GO, "pod u1 has GPUs"
    day.round()
    assert names.FAULT_TAINT in day.own.taints()
    day.busy = ""
    day.round()
    assert day.asked[-1] == "standard" and day.own.taints() == set()


def test_a_judgement_that_came_to_none_is_doubt_and_no_pass(day):
    day.status = NOT_RUN
    day.round()
    assert day.own.doubts == ["not judged: why"] and day.own.taints() == {names.STARTUP_TAINT}


def test_another_boot_is_unproven_until_judged(tmp_path):
    day = Day(tmp_path)
    day.round()
    later = NodeAgent(AgentOptions(directory=tmp_path), day.own, "b2", day.judge, lambda: "")
    later.step()
    assert day.taints_when_asked[-1] == {names.STARTUP_TAINT} and day.own.taints() == set()


@pytest.mark.parametrize(("status", "taint"), [(NO_GO, names.FAULT_TAINT), (NOT_RUN, names.STARTUP_TAINT)])
def test_a_taint_that_somebody_took_away_is_set_again_and_only_a_go_takes_it(day, status, taint):
    day.status = status
    day.round()
    day.own.node["spec"]["taints"] = [{"key": "site/x", "effect": "NoSchedule"}]
    day.agent._due = 1e12
    day.agent.step()
    assert day.own.taints() == {"site/x", taint}
    told = list(day.own.told)
    day.agent.step()
    assert day.own.told == told, "what is there is not told again"


def test_what_was_found_while_the_server_was_away_is_told_later(day):
    day.round()
    day.own.broken, day.status = api.ApiError("down", None), NO_GO
    day.round().round()
    day.own.broken = None
    assert names.FAULT_TAINT not in day.own.taints()
    day.agent._due = 1e12
    day.agent.step()
    assert names.FAULT_TAINT in day.own.taints()


def test_the_server_says_when_to_ask_again(day):
    day.own.broken = api.ApiError("429", api.THROTTLED, 42.0)
    day.agent._due = 1e12
    assert day.agent.step() >= 42.0


def test_a_go_beside_a_quarantine_is_not_told(day, tmp_path):
    (tmp_path / "quarantine.json").write_text("{}")  # one that cannot be read holds too
    day.round()
    assert day.own.taints() == {names.STARTUP_TAINT}
