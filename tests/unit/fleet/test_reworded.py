"""Every message and every sentence of the documentation is reworded: cause, remedy, plan and verdict stay what they are.

The nodes are those of the demo fleet: simulated outputs, judged by the real checks.
"""

import dataclasses
import random
import zlib

import pytest

from flightline.demo import FAULTS
from flightline.demo.faults import NODE
from flightline.fleet import cause_table, causes, checks
from flightline.fleet.judgement import judge_run
from flightline.healing.plan.observe import absorb, from_report
from flightline.healing.plan.planner import FleetState, SchedulerView, plan
from flightline.healing.site import SitePolicy
from flightline.run import gate
from flightline_node.judge import checks as registry
from flightline_node.judge.context import Context
from flightline_node.judge.judgement import judge
from flightline_node.know.expected import resolve
from flightline_node.model import Check, Remedy
from flightline_node.settings import build
from tests.corpus.material import demo
from tests.harness import NOW, InMemory
from tests.memory_store import MemoryStore
from tests.unit.made import STARTED, a_run, record

WORDS = ("title", "what", "why", "remedy", "out_of_service", "source", "first", "do", "says", "advice", "guide", "hold")
PAIRS = 60
OTHERWISE = {"efa_endpoint", "neuron_ls_silent"}
"""Causes that stored outputs do not show: tests/e2e/test_faults.py runs a tool that fails, test_causes.py has one that is silent."""


def reworded(text):
    """Other words, and other words for other texts."""
    return f"zq {zlib.crc32(text.encode()):08x} vx" if text else text


def fleet():
    """Host -> the files of a node: each fault alone, and some pairs of them."""
    mine = [name for name, fault in FAULTS.items() if fault.scope == NODE]
    common = [name for name in mine if FAULTS[name].type == "p5.48xlarge"]
    chance = random.Random(29)
    both = [tuple(chance.sample(common, 2)) for _ in range(PAIRS)]
    return {
        "-".join(some).replace("_", "-"): (FAULTS[some[0]].type, *some) for some in [*((one,) for one in mine), *both]
    }


def answers():
    """What each node's record says."""
    found = []
    for host, (kind, *faults) in fleet().items():
        try:
            files = dict(demo(kind, *faults))
        except (KeyError, ValueError):
            continue  # two faults of the same part
        judged = judge(InMemory(files), resolve(kind), build(level="deep"), NOW, required=False)
        findings = [one.to_record() for one in judged.findings]
        found.append(record(host, *findings, instance_type=kind, measures=judged.measures))
    return found


def decided(records):
    """Everything that is decided from some records, without a text."""
    hosts = [one["host"] for one in records]
    store = MemoryStore(a_run(*hosts), {one["host"]: one for one in records})
    report = judge_run(store, "r1")
    open_ = absorb(from_report(report), (), STARTED)
    places = {host: SchedulerView() for host in hosts}
    groups = {row.host: row.instance_type for row in report.rows}
    made = plan(FleetState(STARTED, groups, places, open_), SitePolicy())
    return {
        "verdict": str(report.verdict),
        "no_go": sorted(gate.check(store, "r1")["no_go"]),
        "roots": {row.host: [_root(one) for one in row.troubles] for row in report.rows},
        "steps": [(one.incident.host, one.do, one.remedy) for one in made.steps],
        "trips": [(one.group, one.check, one.hosts) for one in made.trips],
    }


def _root(trouble):
    root = trouble.root
    explained = sorted((one["check"], one["reason"], str(one["device"])) for one in trouble.explained)
    return root["check"], root["reason"], root["remedy"], trouble.cause, explained


@pytest.fixture(scope="module")
def as_it_is():
    records = answers()
    return records, decided(records)


def test_the_fleet_has_a_node_for_every_cause_that_a_demo_fault_has(as_it_is):
    _, found = as_it_is
    seen = {cause for roots in found["roots"].values() for *_, cause, _ in roots}
    assert {one.id for one in cause_table.CAUSES} - seen == OTHERWISE
    assert len(found["roots"]) > 90 and len(found["steps"]) > 50


def test_no_message_decides_anything(as_it_is, monkeypatch):
    _, found = as_it_is
    plainly = Context.finding
    monkeypatch.setattr(
        Context,
        "finding",
        lambda self, status, message, *seen, **rest: plainly(self, status, reworded(message), *seen, **rest),
    )
    again = answers()
    for one in again:
        for finding in one["findings"]:
            finding["message"] = reworded(finding["message"])
    assert decided(again) == found


def test_no_sentence_of_the_documentation_decides_anything(as_it_is, monkeypatch):
    records, found = as_it_is

    def other(thing):
        names = {field.name for field in dataclasses.fields(thing)} & set(WORDS)
        texts = {name: getattr(thing, name) for name in names}
        return dataclasses.replace(thing, **{name: reworded(text) for name, text in texts.items() if text})

    for name, check in registry.CHECKS.items():
        assert isinstance(check, Check)
        monkeypatch.setitem(registry.CHECKS, name, other(check))
    for name, fleet_check in checks.FLEET_CHECKS.items():
        monkeypatch.setitem(checks.FLEET_CHECKS, name, other(fleet_check))
    table = tuple(other(cause) for cause in cause_table.CAUSES)
    monkeypatch.setattr(causes, "CAUSES", table)
    for remedy in Remedy:
        monkeypatch.setattr(remedy, "row", other(remedy.row))
    assert decided(records) == found
