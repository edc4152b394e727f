"""Three rounds of pairs name what is bad, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flightline.fabric import pairs as pairing
from flightline.fabric.blame import FABRIC, GROUP, INTERMITTENT, NODE, PATH, UNCLEAR, blames, cleared
from flightline.fabric.pairs import Pair, check_round, first_round, second_round
from flightline.fabric.plan import MOST_ROUNDS, ROUNDS, next_round


def ring_of(count):
    return [f"n{at:04}" for at in range(count)]


def played(ring, bad, groups=None, most=MOST_ROUNDS):
    """Play the rounds; bad: (pair, round) -> names of slow senders, or nothing."""
    rounds = []
    while len(rounds) < most and (pairs := next_round(ring, rounds, groups)):
        rounds.append([pairing.Tested(pair, frozenset(bad(pair, len(rounds))), "slow") for pair in pairs])
    return rounds


def found_in(ring, bad, groups=None, most=MOST_ROUNDS):
    tested = [test for results in played(ring, bad, groups, most) for test in results]
    return blames(tested, groups), tested


@pytest.mark.parametrize("count", range(3, 30))
def test_a_small_ring_names_any_bad_node_and_clears_all_others(count):
    ring = ring_of(count)
    for bad in ring:
        found, tested = found_in(ring, lambda pair, _, bad=bad: {bad} & set(pair), most=ROUNDS)
        assert names(found) == {(NODE, (bad,))} and cleared(tested, found) == set(ring) - {bad}


def names(found):
    return {(blame.kind, blame.nodes) for blame in found}


@given(st.integers(2, 300))
def test_two_rounds_test_every_edge_of_the_ring_once(count):
    ring = ring_of(count)
    for pairs in (first_round(ring), second_round(ring)):
        check_round(pairs)
    tested = [pair.key for pair in first_round(ring) + second_round(ring)]
    edges = [frozenset((ring[at], ring[(at + 1) % count])) for at in range(count)]
    missing = set(edges) - set(tested)
    assert len(missing) == (1 if count % 2 and count > 2 else 0), "an odd ring's closing edge comes third"
    assert count == 2 or len(tested) == len(set(tested))


@given(st.integers(4, 300), st.data())
def test_a_healthy_ring_has_nobody_to_blame_and_everybody_is_cleared(count, data):
    ring = ring_of(count)
    found, tested = found_in(ring, lambda pair, _: ())
    assert found == [] and cleared(tested, found) == set(ring)


@given(st.integers(3, 300), st.data())
def test_one_bad_node_is_named_in_three_rounds(count, data):
    ring = ring_of(count)
    bad = data.draw(st.sampled_from(ring))
    found, tested = found_in(ring, lambda pair, _: {bad} & set(pair), most=ROUNDS)
    assert names(found) == {(NODE, (bad,))}
    assert cleared(tested, found) == set(ring) - {bad}


@given(st.integers(5, 300), st.data(), st.booleans())
def test_one_bad_path_is_named_in_three_rounds_with_the_side_that_sends_slowly(count, data, one_side):
    ring = ring_of(count)
    at = data.draw(st.integers(0, count - 1))
    path = (ring[at], ring[(at + 1) % count])
    slow = path[:1] if one_side else path
    found, _ = found_in(ring, lambda pair, _: slow if set(pair) == set(path) else (), most=ROUNDS)
    if names(found) != {(PATH, tuple(sorted(path)))}:
        # An odd ring's closing edge is tested once, last: it is named as one of its ends or as a thing seen once.
        assert count % 2 and set(path) == {ring[0], ring[-1]} and {n for b in found for n in b.nodes} == set(path)
    else:
        assert found[0].sending == (path[0] if one_side else "")


@given(st.integers(12, 300), st.data())
def test_several_bad_nodes_are_all_named_also_side_by_side(count, data):
    ring = ring_of(count)
    first = data.draw(st.integers(0, count - 1))
    bad = {ring[first], ring[(first + 1) % count], ring[(first + data.draw(st.integers(4, count - 3))) % count]}
    found, _ = found_in(ring, lambda pair, _: bad & set(pair), most=ROUNDS)
    assert {node for blame in found for node in blame.nodes} == bad and {blame.kind for blame in found} == {NODE}


def test_a_bad_uplink_is_the_group_s_and_not_each_node_s():
    ring = ring_of(64)
    groups = {node: f"leaf-{at // 16}" for at, node in enumerate(ring)}

    def bad(pair, _):
        inside = [groups[node] == "leaf-2" for node in pair]
        return pair if any(inside) and not all(inside) else ()

    found, _ = found_in(ring, bad, groups)
    assert names(found) == {(GROUP, tuple(ring[32:48]))}


def test_when_nothing_passes_no_node_is_named():
    found, tested = found_in(ring_of(8), lambda pair, _: pair)
    assert names(found) == {(FABRIC, ())} and cleared(tested, found) == set()


def test_two_nodes_cannot_be_told_apart():
    found, _ = found_in(ring_of(2), lambda pair, _: pair)
    assert names(found) == {(UNCLEAR, ("n0000", "n0001"))}


def test_what_fails_once_is_tested_again_and_both_ends_stay_named():
    ring = ring_of(8)
    rounds = played(ring, lambda pair, at: pair if at == 0 and "n0002" in pair else ())
    found = blames([test for results in rounds for test in results])
    assert names(found) == {(INTERMITTENT, ("n0002", "n0003"))} and len(rounds) == MOST_ROUNDS


def test_one_node_alone_has_no_pair_and_a_name_twice_is_refused():
    assert next_round(["a"], []) == [] and next_round([], []) == []
    with pytest.raises(ValueError, match="twice"):
        next_round(["a", "a"], [])
    with pytest.raises(ValueError, match="two pairs"):
        check_round([Pair("a", "b"), Pair("b", "c")])
