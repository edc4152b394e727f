"""Which idle nodes are proven next, and what counts as a proof."""

import pytest

from flightline.fleet.proofs import NodeProof, is_whole, of_looks
from flightline.healing.journal.incident import EVERY
from flightline.healing.journal.stamps import later
from flightline.healing.plan.due import due
from flightline.healing.plan.jobs import RunningJob
from flightline.healing.plan.planner import SchedulerView
from flightline.healing.site import SitePolicy
from flightline.store.sqlite import Look
from flightline_node.judge.checks import CHECKS

from .made import T0, fleet, incident

ALL = SitePolicy(prove=1, prove_percent=100, prove_deep_percent=100)


def ago(hours):
    return later(T0, -3600 * hours)


def proof(standard=None, deep=None, tried=None):
    proven = {level: ago(h) for level, h in (("standard", standard), ("deep", deep)) if h is not None}
    return NodeProof(proven, {level: ago(h) for level, h in (tried or {}).items()})


def chosen(proofs, site=ALL, size=3, **more):
    return due(fleet(size=size, **more), proofs, site)


def test_standard_every_24_hours_then_deep_every_7_days_the_oldest_first():
    ages = {"n1": proof(25, 25), "n2": proof(23, 167), "n3": proof(30, 30)}
    assert chosen(ages) == [("n3", "standard"), ("n1", "standard")]
    assert chosen({"n1": proof(1, 169), "n2": proof(1, 167), "n3": proof(1)}) == [("n3", "deep"), ("n1", "deep")]
    assert chosen({"n1": proof(1, 1), "n2": proof(1, 1)}) == [("n3", "standard")], "never looked at"
    assert chosen({}, SitePolicy(prove=1, prove_standard_h=0, prove_deep_h=0)) == []
    assert chosen({}, SitePolicy(prove_percent=100, prove_deep_percent=100)) == [], "a site asks for it"


def test_one_that_was_just_tried_waits_an_hour():
    young, old = proof(25, 1, {"standard": 0.9}), proof(25, 1, {"standard": 1.1})
    assert chosen({"n1": young, "n2": old, "n3": proof(1, 1)}) == [("n2", "standard")]


@pytest.mark.parametrize(
    "place",
    [
        SchedulerView(jobs=(RunningJob("7"),)),
        SchedulerView(out=True, reason="ada: disk"),
        SchedulerView(reserved=True),
        SchedulerView(known=False),
        SchedulerView(silent=True),
    ],
)
def test_only_a_node_that_nobody_needs_or_holds(place):
    assert [host for host, _ in chosen({}, places={"n2": place})] == ["n1", "n3"]


def test_no_sick_one_and_none_while_people_or_a_breaker_say_stop():
    assert [host for host, _ in due(fleet(incident("n1"), size=3), {}, ALL)] == ["n2", "n3"]
    for stop in (EVERY, "p5", "p5:lost"):
        assert chosen({}, stops={stop: "why"}) == []
    assert chosen({}, stops={"p6": "why"}) != []


def test_within_the_shares():
    assert len(chosen({}, SitePolicy(prove=1), size=20)) == 1
    assert len(chosen({}, SitePolicy(prove=1), size=100)) == 5
    deep = {f"n{number}": proof(1) for number in range(1, 201)}
    assert len(chosen(deep, SitePolicy(prove=1), size=200)) == 4, "of the whole fleet"
    assert chosen({}, SitePolicy(prove=1, prove_percent=0), size=20) == []
    out = {f"n{number}": SchedulerView(out=True) for number in range(1, 4)}
    assert len(chosen({}, SitePolicy(prove=1, need=15, prove_percent=50), size=20, places=out)) == 2, "15 stay"


def looks(*rows):
    """(hours ago, level, verdict) or with more of a look, newest first."""
    made = [{"h": row[0], "level": row[1], "verdict": row[2], **(row[3] if len(row) > 3 else {})} for row in rows]
    base = {"host": "n1", "instance_id": "i-1", "status": "PASS"}
    return [Look(run_id=f"R{n}", started_at=ago(one.pop("h")), **{**base, **one}) for n, one in enumerate(made)]


@pytest.mark.parametrize(
    ("seen", "proven"),
    [
        ([(1, "quick", "go"), (2, "standard", "go"), (9, "deep", "go")], {"standard": 2, "deep": 9}),
        ([(3, "deep", "go")], {"standard": 3, "deep": 3}),
        ([(1, "quick", "no-go", {"status": "FAIL"}), (2, "deep", "go")], {}),
        ([(1, "deep", "go"), (2, "quick", "no-go", {"status": "FAIL"})], {"standard": 1, "deep": 1}),
        ([(1, "quick", "no-go", {"status": "UNKNOWN"}), (2, "deep", "go")], {}),
        ([(1, "quick", "no-go", {"status": "UNREACHABLE"}), (2, "standard", "go")], {"standard": 2}),
        ([(1, "quick", "go", {"instance_id": "i-2"}), (2, "standard", "go")], {}),
        ([(1, "standard", "go", {"run_id": "part"}), (2, "standard", "go")], {"standard": 2}),
    ],
)
def test_what_a_proof_is(seen, proven):
    part = [one if len(one) < 4 else (*one[:3], {k: v for k, v in one[3].items() if k != "run_id"}) for one in seen]
    parts = {ago(one[0]) for one in seen if len(one) > 3 and "run_id" in one[3]}
    found = of_looks(looks(*part), lambda one: one.started_at not in parts)
    assert found["n1"].proven == {level: ago(h) for level, h in proven.items()}


def test_a_go_of_a_single_check_is_no_proof_of_its_level():
    def record(level, asked):
        skipped = {"status": "SKIP", "reason": "not_asked"}
        checks = [check for check in CHECKS.values() if level == "deep" or check.level != "deep"]
        return {"findings": [{"check": one.id, **({} if asked(one) else skipped)} for one in checks]}

    for level in ("standard", "deep"):
        assert is_whole(record(level, lambda one: one.id != "fio_disk"), level)
        assert not is_whole(record(level, lambda one: one.id in ("dcgm_diag", "xid")), level)
        assert not is_whole(None, level)
