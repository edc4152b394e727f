"""How much may be out at once, and when so much is sick that nothing more is changed."""

from collections import Counter

import pytest

from flightline.healing.journal.stamps import later
from flightline.healing.plan.budget import Detection, OutageBudget, most_out, trips
from flightline.healing.site import SitePolicy
from tests.unit.healing.made import T0


@pytest.mark.parametrize(
    ("size", "percent", "need", "most"),
    [
        (8, 10, 0, 1),
        (20, 10, 0, 2),
        (29, 10, 0, 2),
        (1, 10, 0, 1),
        (0, 10, 0, 0),
        (64, 10, 60, 4),
        (64, 10, 64, 0),
        (64, 10, 65, 0),
        (64, 0, 0, 0),
        (64, 100, 0, 64),
    ],
)
def test_most_out(size, percent, need, most):
    assert most_out(size, SitePolicy(budget_percent=percent, need=need)) == most


def test_what_others_took_out_counts():
    budget = OutageBudget(SitePolicy(), {"p5": 20}, Counter(p5=1))
    assert budget.take_out("p5") == ""
    assert "2 of 20 p5 out with 1 of this plan, at most 2" in budget.take_out("p5")


def test_repairs_are_bounded_too_and_one_goes_on_where_need_is_not_met():
    budget = OutageBudget(SitePolicy(need=20), {"p5": 20}, Counter(p5=5))
    assert budget.take_out("p5")
    assert budget.begin("p5") == ""
    assert "1 of 20 p5 under repair" in budget.begin("p5")


def test_a_budget_of_zero_repairs_nothing():
    assert OutageBudget(SitePolicy(budget_percent=0), {"p5": 20}, Counter(p5=5)).begin("p5")


def seen(count, reason="count_differs", group="p5", step_s=0.0):
    return [Detection(group, "gpu_count", reason, f"n{number}", later(T0, number * step_s)) for number in range(count)]


@pytest.mark.parametrize(
    ("size", "sick", "falls"),
    [(9, 3, False), (9, 4, True), (1, 1, False), (2, 1, False), (2, 2, True), (3, 1, False), (3, 2, True)],
)
def test_the_breaker_falls_at_more_than_a_third_and_never_for_one_node(size, sick, falls):
    assert bool(trips(seen(sick), {"p5": size}, SitePolicy())) is falls


def test_slow_faults_are_no_crowd():
    assert trips(seen(8, step_s=240), {"p5": 12}, SitePolicy()) == []
    (trip,) = trips(seen(8, step_s=120), {"p5": 12}, SitePolicy())
    assert trip.hosts == ("n0", "n1", "n2", "n3", "n4")


def test_a_crowd_of_an_hour_ago_counts_after_a_slow_start():
    lonely = [Detection("p5", "gpu_count", "count_differs", "n9", later(T0, 3600))]
    assert trips([*seen(5), *lonely], {"p5": 12}, SitePolicy())


def test_one_node_many_times_and_different_findings_are_no_crowd():
    again = [Detection("p5", "xid", "xid.79", "n1", later(T0, number)) for number in range(50)]
    mixed = [Detection("p5", "xid", f"xid.{number}", f"n{number}", T0) for number in range(8)]
    assert trips([*again, *mixed], {"p5": 12}, SitePolicy()) == []


def test_another_group_is_another_crowd():
    assert trips([*seen(3), *seen(3, group="p4")], {"p5": 12, "p4": 12}, SitePolicy()) == []
