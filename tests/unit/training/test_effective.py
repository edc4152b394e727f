"""The simulation against what can be calculated by hand."""

import math
from dataclasses import replace

import pytest

from flightline.training.effective import (
    CAUSES,
    GPU_HOURS_BETWEEN,
    INTERRUPTIONS,
    ClusterRates,
    interval_s,
    simulate,
    spares,
)

FREE = ClusterRates(stall_s=0, write_s=0, crash_s=0, hang_s=0, restart_s=0, swap_s=0, spares=10**6, fewer=False)


def test_the_published_table():
    assert (INTERRUPTIONS, len(CAUSES)) == (419, 18)
    assert pytest.approx(50_677, abs=1) == GPU_HOURS_BETWEEN
    assert ClusterRates().between_s / 3600 == pytest.approx(3.09, abs=0.01)


def test_as_many_interruptions_as_published():
    counts = [simulate(FREE, 60, 54, seed).interruptions for seed in range(40)]
    assert sum(counts) / len(counts) == pytest.approx(419, rel=0.03)


def test_without_any_cost_everything_trains():
    assert simulate(FREE, 1, 54, 1).share > 0.999


def test_down_time_is_what_each_interruption_takes():
    found = simulate(replace(FREE, crash_s=100, hang_s=100, restart_s=200), 1, 200, 3)
    # A few faults come while the last one is being recovered from.
    assert found.down_h == pytest.approx(found.interruptions * 300 / 3600, rel=0.05)


def test_lost_is_half_an_interval_for_each_interruption():
    found = simulate(FREE, 1200, 200, 5)
    assert found.lost_h == pytest.approx(found.interruptions * 600 / 3600, rel=0.05)


def test_without_spares_each_replacement_waits_for_the_repair():
    none = simulate(replace(FREE, spares=0, repair_h=1.0), 60, 54, 1)
    assert none.waited_h > 50 and simulate(FREE, 60, 54, 1).waited_h == 0


def test_the_derived_interval_is_near_the_best_of_all():
    site = ClusterRates(stall_s=5.0, write_s=10.0)
    share = {factor: sum(simulate(site, interval_s(site) * factor, 54, seed).share for seed in range(20)) / 20
             for factor in (0.25, 0.5, 1, 2, 4)}  # fmt: skip
    assert max(share.values()) - share[1] < 0.001 and share[1] > share[0.25] and share[1] > share[4]


def test_the_interval_follows_from_the_size_and_is_never_shorter_than_a_write():
    assert interval_s(ClusterRates(gpus=1024)) == pytest.approx(interval_s(ClusterRates(gpus=4096)) * 2)
    assert interval_s(ClusterRates(write_s=900)) == 900
    assert math.isclose(interval_s(ClusterRates()), math.sqrt(2 * ClusterRates().between_s))


@pytest.mark.parametrize("gpus", [1024, 16_384])
def test_the_derived_spares_are_hardly_ever_used_up_and_half_of_them_often(gpus):
    site = replace(FREE, gpus=gpus, spares=spares(ClusterRates(gpus=gpus)))
    short = replace(site, spares=spares(site) // 3)
    assert sum(simulate(site, 60, 54, seed).waited_h for seed in range(20)) / 20 < 2
    assert sum(simulate(short, 60, 54, seed).waited_h for seed in range(20)) / 20 > 2


@pytest.mark.parametrize(("restart_s", "percent"), [(60, 97.2), (180, 96.2), (300, 95.2), (600, 92.7)])
def test_the_table_of_the_documentation(restart_s, percent):
    site = ClusterRates(hang_s=120.0, restart_s=restart_s)
    found = sum(simulate(site, interval_s(site), 54, seed).share for seed in range(24)) / 24
    assert 100 * found == pytest.approx(percent, abs=0.1)


def test_repairs_of_three_days_cost_nodes_and_not_the_run():
    site = ClusterRates(hang_s=120.0, repair_h=72.0)
    goes_on, waits = (simulate(replace(site, fewer=fewer), 149, 54, 1) for fewer in (True, False))
    assert goes_on.share > 0.95 and goes_on.waited_h == 0 and waits.share < 0.4
    # No free lunch: of a small cluster the missing nodes are a large share.
    small = replace(site, gpus=64, spares=0, repair_h=24 * 54)
    assert simulate(small, 149, 540, 1).share < 0.9


def test_silent_corruption_costs_what_was_trained_until_it_was_noticed():
    late = simulate(replace(FREE, silent_s=3600.0), 60, 540, 1)
    assert late.lost_h - simulate(FREE, 60, 540, 1).lost_h == pytest.approx(419 * 10 * 6 / 419, rel=0.4)
