"""Launches are stopped by share: simulated launches, seeded, over sizes and shares of bad nodes."""

import math
import random

import pytest

from bench import bench_launches as simulation
from flightline.cloud.functions.alert_router.share import LIMIT, RISK, Ends, Run, run

HEALTHY = [(4, 0.02), (64, 0.02), (512, 0.01), (1000, 0.01), (1000, 0.02), (2000, 0.02)]


def test_the_bound_by_itself_is_one_in_a_thousand_for_the_largest_launch():
    assert 2_000 * math.exp(-LIMIT) <= RISK * 1.0001


@pytest.mark.parametrize(("nodes", "bad"), HEALTHY)
def test_a_healthy_launch_is_stopped_at_most_once_in_a_thousand(nodes, bad):
    order = random.Random(f"{nodes} {bad}")
    rounds = 2_000 if nodes < 1000 else 1_000
    assert sum(simulation.launch(nodes, bad, order).stopped for _ in range(rounds)) <= rounds // 1000


@pytest.mark.parametrize("nodes", [4, 10, 64, 2000])
@pytest.mark.parametrize("bad", [0.95, 1.0])
def test_a_bad_image_is_stopped_within_ten_boots(nodes, bad):
    order = random.Random(f"{nodes} {bad}")
    found = [simulation.launch(nodes, bad, order) for _ in range(1000)]
    late = [one for one in found if not one.stopped or one.boots > 10]
    assert len(late) <= (1 if bad < 1 else 0)


def test_goes_of_before_hide_no_image_that_is_bad_now():
    before = [Ends(f"2026-11-21T10:{minute:02d}", served=40) for minute in range(50)]
    after = [Ends(f"2026-11-21T11:{minute:02d}", (f"i-{minute}",)) for minute in range(5)]
    found = run([*after, *before])
    assert found.stops(5) and found.who == tuple(f"i-{n}" for n in range(5)) and found.served == 0


@pytest.mark.parametrize(("floor", "stops"), [(0, False), (5, True), (6, True), (7, False)])
def test_the_floor_is_the_fewest_boots_without_a_go(floor, stops):
    assert Run().after(tuple("abcdef")).stops(floor) is stops


def test_a_pool_with_five_bad_of_five_hundred_goes_on_and_five_in_a_row_stop():
    spread = [Ends(f"2026-11-21T{10 + n}:00", (f"i-{n}",), served=100) for n in range(5)]
    assert not run(spread).stops(5)
    assert run([Ends("2026-11-21T10:00", tuple("abcde"))]).stops(5)
