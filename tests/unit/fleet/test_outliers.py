"""Distributions and outliers: found where they are, and only there."""

import random

import pytest

from flightline.fleet.outliers import BINS, MOST_OUTLIERS, Samples, distributions


def spread(values, name="busbw", unit="GB/s", instance_type="p5.48xlarge"):
    samples = Samples()
    for number, value in enumerate(values):
        samples.add(f"n{number}", instance_type, {name: {"unit": unit, "values": {"GPU 0": value}}})
    return distributions(samples)


def test_quantiles_and_bins():
    (found,) = spread(range(101))
    assert (found.name, found.unit, found.count) == ("busbw", "GB/s", 101)
    assert found.quantiles == (0, 5, 25, 50, 75, 95, 100)
    assert len(found.bins) == BINS and sum(found.bins) == 101 and min(found.bins) > 0
    assert found.outliers == []


def test_the_slow_node_is_an_outlier_by_host_and_device():
    random.seed(3)
    (found,) = spread([480 + random.gauss(0, 2) for _ in range(63)] + [391.0])
    (outlier,) = found.outliers
    assert (outlier.host, outlier.device, outlier.value) == ("n63", "GPU 0", 391.0) and outlier.score < -5


def test_where_all_others_agree_the_one_that_differs_is_an_outlier():
    (found,) = spread([8] * 40 + [7])
    assert [(item.host, item.value) for item in found.outliers] == [("n40", 7)]


def test_normal_spread_has_no_outliers_and_a_hair_s_breadth_is_none():
    random.seed(5)
    assert spread([random.gauss(40, 3) for _ in range(2000)])[0].outliers == []
    assert spread([1000.0] * 50 + [1000.5])[0].outliers == []


@pytest.mark.parametrize("values", [[1, 100], [5] * 30, [1.0]])
def test_too_few_or_equal_values_have_no_outliers(values):
    assert spread(values)[0].outliers == []


def test_what_is_not_a_finite_number_is_left_out():
    (found,) = spread([1, 2, float("nan"), float("inf"), None, "x", 3, 10**400])
    assert found.count == 3 and found.quantiles[-1] == 3
    assert spread(["x", None]) == []


def test_devices_keep_their_values_where_one_is_left_out():
    samples = Samples()
    samples.add("a", "t", {"m": {"unit": "", "values": {"GPU 0": 1, "GPU 1": None, "GPU 2": 1}}})
    for number in range(20):
        samples.add(f"n{number}", "t", {"m": {"unit": "", "values": {"GPU 0": 1, "GPU 2": 9 if number == 5 else 1}}})
    (found,) = distributions(samples)
    assert [(item.host, item.device) for item in found.outliers] == [("n5", "GPU 2")]


def test_instance_types_are_not_compared_with_each_other():
    samples = Samples()
    for number in range(20):
        samples.add(f"a{number}", "p5.48xlarge", {"busbw": {"unit": "", "values": {"": 480 + number % 3}}})
        samples.add(f"b{number}", "p4d.24xlarge", {"busbw": {"unit": "", "values": {"": 235 + number % 3}}})
    found = distributions(samples)
    assert [item.name for item in found] == ["busbw (p4d.24xlarge)", "busbw (p5.48xlarge)"]
    assert all(item.outliers == [] for item in found)


def test_the_farthest_are_kept_of_too_many():
    random.seed(9)
    (found,) = spread([random.gauss(10, 1) for _ in range(1000)] + [50.0] * 200 + [900.0])
    assert len(found.outliers) == MOST_OUTLIERS and found.outliers[0].value == 900.0
