"""A pair's figures become a result: against a floor, against its peers, and never by what is missing."""

import math

import pytest

from flightline.fabric.criterion import Measured, judge, reference
from flightline.fabric.pairs import Pair


def measured(a=10.0, b=10.0, first="a", second="b", **rest):
    return Measured(Pair(first, second), {first: a, second: b}, **rest)


FLEET = [measured(first=f"a{at}", second=f"b{at}") for at in range(6)]


def last(one, **rest):
    return judge([*FLEET, one], **rest)[-1]


def test_a_pair_like_its_peers_is_good_and_a_slow_sender_is_named_with_figures():
    assert last(measured(9.5, 10.4)).good
    result = last(measured(10.0, 7.0))
    assert result.slow == {"b"} and result.why == "b sent 7 GB/s, wanted 8 (80% of what the better pairs reach)"


def test_the_floor_holds_where_all_are_slow_alike():
    slow = judge([measured(2.0, 2.0, f"a{at}", f"b{at}") for at in range(6)], floor_gb_s=5.0)
    assert not any(result.good for result in slow) and "the floor of the instance type" in slow[0].why


def test_half_of_the_pairs_may_be_bad():
    pairs = [measured(10.0 if at % 2 else 4.0, 10.0 if at % 2 else 4.0, f"a{at}", f"b{at}") for at in range(8)]
    assert [result.good for result in judge(pairs)] == [False, True] * 4


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (measured(error="a: connection refused"), "connection refused"),
        (measured(wrong=3), "3 wrong results, wanted 0"),
        (measured(transport="sockets, wanted EFA"), "sockets, wanted EFA"),
        (Measured(Pair("a", "b"), {}), "no bandwidth for each direction"),
        (Measured(Pair("a", "b"), {"a": 10.0}), "no bandwidth for each direction"),
        (Measured(Pair("a", "b"), {"a": 10.0, "c": 10.0}), "no bandwidth for each direction"),
        (measured(math.nan), "no bandwidth for each direction"),
        (measured(math.inf), "no bandwidth for each direction"),
    ],
)
def test_what_shows_no_bandwidth_is_no_pass(given, why):
    result = last(given)
    assert result.slow == set(given.pair) and why in result.why


def test_too_few_pairs_without_a_floor_show_nothing():
    assert reference([10.0] * 3) is None
    result = judge([measured()])[0]
    assert not result.good and "nothing to hold the bandwidth against" in result.why
    assert judge([measured()], floor_gb_s=5.0)[0].good


def test_a_pair_that_is_slow_at_one_size_alone_is_named_by_that_size():
    """Healthy pairs differ where NCCL changes its algorithm: there half of what the better ones reach is enough."""
    sizes = {128 << 20: 6.0, 1 << 30: 9.0, 8 << 30: 10.0}
    fleet = [measured(first=f"a{at}", second=f"b{at}", sizes=sizes) for at in range(6)]
    judged = judge([*fleet, measured(sizes={**sizes, 128 << 20: 2.9}), measured(sizes={**sizes, 1 << 30: 4.6})])
    assert [result.good for result in judged] == [True] * 6 + [False, True]
    assert judged[6].slow == {"a", "b"}
    assert judged[6].why == "a and b reached 2.9 GB/s at 128 MiB, wanted 3 (50% of what the better pairs reach)"
