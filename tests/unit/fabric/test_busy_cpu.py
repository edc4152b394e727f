"""What a busy CPU may explain names nobody; what stands out all the same, or is no matter of speed, does."""

import pytest

from flightline.fabric.blame import blames
from flightline.fabric.busy_cpu import discounted
from flightline.fabric.criterion import Measured, judge
from flightline.fabric.pairs import Pair

ROUNDS = (
    (("a", "b"), ("c", "d"), ("e", "f")),
    (("b", "c"), ("d", "e"), ("f", "a")),
    (("a", "d"), ("b", "e"), ("c", "f")),
)


def found(figures, busy=0.9, usual=10.0, error=""):
    """figures: pair -> what it reached where that is not the usual."""
    measured = [
        [
            Measured(Pair(*pair), dict.fromkeys(pair, figures.get(pair, usual)), busy_share=busy)
            if pair not in figures or not error
            else Measured(Pair(*pair), {}, error=error, busy_share=busy)
            for pair in pairs
        ]
        for pairs in ROUNDS
    ]
    flat = iter(judge([one for played in measured for one in played]))
    rounds = [[next(flat) for _ in played] for played in measured]
    named = blames([test for results in rounds for test in results])
    return [(one.kind, one.nodes, one.why) for one in discounted(named, measured, rounds)]


def of(node, figure):
    return {pair: figure for pairs in ROUNDS for pair in pairs if node in pair}


def test_a_fault_far_from_the_others_is_named_under_load_too():
    ((kind, nodes, _),) = found(of("c", 3.0))
    assert (kind, nodes) == ("node", ("c",))


def test_what_is_close_to_who_passed_is_unclear_under_load_and_named_without():
    near = {**of("c", 7.8), ("a", "b"): 8.2}
    ((kind, nodes, why),) = found(near)
    assert (kind, nodes) == ("unclear", ("c",)) and "waited for a CPU 90% of the time: measure again" in why
    assert found(near, busy=0.1)[0][:2] == ("node", ("c",))


def test_what_came_and_went_under_load_names_nobody_as_sick():
    now_and_then = {("b", "c"): 3.0, ("c", "f"): 3.0}
    assert found(now_and_then)[0][:2] == ("unclear", ("c",))
    assert found(now_and_then, busy=0.2)[0][:2] == ("intermittent", ("c",))


@pytest.mark.parametrize("busy", [0.0, 1.0])
def test_what_breaks_is_no_matter_of_speed(busy):
    ((kind, nodes, why),) = found(of("c", 0.0), busy, error="wrong results")
    assert (kind, nodes, why.rpartition(": ")[2]) == ("node", ("c",), "wrong results")
