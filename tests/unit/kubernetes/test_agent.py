"""The agent's order of things, with a Node in memory; the API server itself is in tests/kubernetes."""

import copy
import json
import threading
import time
from dataclasses import asdict
from pathlib import Path
from urllib.parse import unquote

import pytest

from flightline.healing.steps.kubernetes import _place
from flightline_node.act import repair
from flightline_node.kubernetes import api, drain, names
from flightline_node.kubernetes.agent import AgentOptions, NodeAgent
from flightline_node.kubernetes.judging import Judged
from flightline_node.kubernetes.own_node import NodeUpdate, OwnNode
from flightline_node.kubernetes.standing import Standing, patch, read, settled
from flightline_node.watch import marker as marking
from flightline_node.watch.options import Options
from flightline_node.watch.slurm import DrainResult

GO, NO_GO, NOT_RUN = 0, 1, 2


class MemoryNode(OwnNode):
    """As OwnNode, without a server. broken: what every request raises."""

    name = "gpu-07"

    def __init__(self):
        meta = {"name": self.name, "uid": "u-1", "resourceVersion": "7", "annotations": {}}
        self.node: dict = {
            "metadata": meta,
            "spec": {"taints": [{"key": names.STARTUP_TAINT, "effect": "NoSchedule"}]},
        }
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
        self.decided = None
        out = lambda word, again: self.decided or (self.own.tell(word) and DrainResult("drained", ""))  # noqa: E731
        self.agent = NodeAgent(given, self.own, "b1", self.judge, lambda: self.busy, self.slept.append, out)

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


@pytest.mark.parametrize("level", ["quick", "standard"])
def test_what_many_nodes_have_leaves_this_one_in_service(day, level):
    day.round()
    if level == "standard":
        day.agent._deep_due = 0.0
    day.status, day.decided = NO_GO, DrainResult("suspect", "6 of 8 have it")
    day.round()
    assert (day.asked[-1], day.own.taints(), day.agent.stands.verdict) == (level, set(), "go")


def test_before_its_first_go_a_node_is_in_nobodys_service_and_no_rule_is_asked(day):
    day.status, day.decided = NO_GO, DrainResult("suspect", "6 of 8 have it")
    assert names.FAULT_TAINT in day.round().own.taints()


def test_while_the_rule_has_no_answer_it_is_asked_again(day):
    day.round()
    day.status, day.decided = NO_GO, DrainResult("pending", "the API server is away")
    assert day.round().own.taints() == set()
    day.decided = None
    day.agent.step()
    assert day.own.taints() == {names.FAULT_TAINT}


def test_where_a_controller_acts_its_proof_lifts_a_no_go_and_no_go_of_the_agents_own(tmp_path):
    root = tmp_path / "var/lib/flightline"
    root.mkdir(parents=True)
    day = Day(root, returns=False)
    day.round()
    day.status = NO_GO
    day.round()
    day.status = GO
    day.round().round()
    assert day.own.taints() == {names.FAULT_TAINT}
    repair.take(repair.RepairStep("release", 1, root=str(tmp_path), run="R1", judged_at="2020-01-01T00:00:00Z"))
    assert day.round().own.taints() == {names.FAULT_TAINT}, "it looked before the fault"
    time.sleep(0.005)
    repair.take(repair.RepairStep("release", 1, root=str(tmp_path), run="R2"))
    day.agent.step()
    assert day.own.taints() == set(), "and at once"


class MemoryApi:
    """Nodes as the API server keeps them, for what the rule asks of it; every request waits its turn."""

    def __init__(self, count):
        self.lock, self.most = threading.Lock(), 0
        kind = {names.TYPE_LABEL: "p5.48xlarge", names.VERDICT_LABEL: "go"}
        stood = {names.STANDING: json.dumps(asdict(Standing("go", "quick", "R", marking.stamp(), "b")))}
        self.nodes: dict[str, dict] = {
            f"n{number}": {
                "metadata": {"name": f"n{number}", "uid": "u", "labels": dict(kind), "annotations": dict(stood), "resourceVersion": "1"},
                "spec": {},
            }
            for number in range(count)
        }  # fmt: skip

    def ask(self, to, method, path, body=None, kind="", accept=""):
        with self.lock:
            if method == "POST":
                return {}
            name = path.partition("?")[0].split("/")[4:]
            if method == "PATCH" and "status" not in path:
                node = self.nodes[name[0]]
                for part in ("labels", "annotations"):
                    merged = {**node["metadata"][part], **body["metadata"].get(part, {})}
                    node["metadata"][part] = {key: value for key, value in merged.items() if value is not None}
                node["spec"].update(body.get("spec", {}))
                self.most = max(self.most, sum(bool(one["spec"].get("taints")) for one in self.nodes.values()))
            if name:
                return copy.deepcopy(self.nodes[name[0]])
            wanted = dict(
                pair.split("=") for pair in unquote(path.partition("labelSelector=")[2].partition("&")[0]).split(",")
            )
            found = [one for one in self.nodes.values() if wanted.items() <= one["metadata"]["labels"].items()]
            # Of none a real server (1.36) writes null in both.
            return copy.deepcopy({"rows" if accept == api.TABLE else "items": found or None})


@pytest.mark.parametrize("count", [2, 8, 100])
def test_the_same_fault_on_all_nodes_taints_the_budget(monkeypatch, count):
    server, done = MemoryApi(count), {}
    monkeypatch.setattr(api, "ask", server.ask)
    claim = "flightline: xid GPU 3 by watch at quick for xid.79 run R"

    def node(name):
        own = OwnNode(api.ApiAccess("", Path()), name, lambda: "2026-11-22T10:00:00Z")
        word = Standing("no-go", "quick", "R", marking.stamp(), "b", claim)
        done[name] = drain.leave(own, word, Options(), False).state

    threads = [threading.Thread(target=node, args=(name,)) for name in server.nodes]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert (server.most, list(done.values()).count("drained")) == (max(1, count // 10),) * 2
    assert set(done.values()) == {"drained", "suspect"}
    suspects = [place for place in map(_place, server.nodes.values(), [{}] * count) if place.suspect]
    assert len(suspects) == count - server.most
    assert {place.suspect.reason for place in suspects} == {"xid.79"}
