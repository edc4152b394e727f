"""A model of the whole, explored state by state: nodes, what runs on them, people, who proves, the budget.

Each step is one call to the scheduler or one thing that happens; any may come next. The decisions are the product's
(rule.decide); order, kills and time are the model's. A program that is killed begins again: the marker is on its disk.
"""

from collections import deque
from typing import NamedTuple

import pytest

from flightline_node.watch import rule
from flightline_node.watch.rule import (
    CLAIM,
    DRAIN,
    GOING,
    HELD,
    HOLD,
    NONE,
    OUT,
    TOLD,
    WAIT,
    WAITS,
    Decision,
    Row,
    RulePolicy,
)
from tests.healing import sequences

REST, LOOK, LEAVE = "rest", "look", "leave"
"""What runs on a node: nothing (all is decided), about to ask, about to drain. "write MARK" is about to mark."""


class Node(NamedTuple):
    """sick: it has a fault that no person overruled. old: out for longer than the window."""

    does: str = REST
    mark: str = NONE
    sick: bool = False
    old: bool = False
    theirs: bool = False


def steps(nodes, policy, decide):
    """Every state that may follow."""
    for number, one in enumerate(nodes):
        for after in node_steps(number, one, nodes, policy, decide):
            yield (*nodes[:number], after, *nodes[number + 1 :])
    yield tuple(one._replace(old=one.old or one.mark == OUT) for one in nodes)
    if any(one.mark in (HELD, TOLD) for one in nodes):  # a person lets go on
        yield tuple(
            one._replace(mark=NONE, does=LOOK if one.sick else one.does) if one.mark in (HELD, TOLD) else one
            for one in nodes
        )


def node_steps(number, one, nodes, policy, decide):
    if one.does == REST:
        yield from happens(number, one)
        return
    yield one._replace(does=LOOK)  # killed, and begun again
    if one.does == LOOK:
        yield from looks(number, one, nodes, policy, decide)
    elif one.does == LEAVE:
        yield one._replace(does=REST, mark=OUT)
    else:
        mark = one.does.removeprefix("write ")
        yield one._replace(mark=mark, does=REST if mark == HELD else LOOK)


def happens(number, one):
    """To a node on which nothing is under way."""
    if not one.sick:
        yield one._replace(sick=True, does=REST if one.theirs else LOOK)
        if one.mark == NONE and not one.theirs:
            yield one._replace(sick=True, does=f"write {GOING}")  # a watcher that knows that it has no mark
    if one.mark == OUT:
        yield Node()  # proof; or a person puts it back, and its claim is closed as overruled
    if one.sick and one.mark != NONE:
        yield one._replace(sick=False)  # a repair, or nothing was wrong
    if not one.sick and one.mark in (HELD, TOLD):
        yield Node()  # proof of a suspect
    if one.mark != OUT and number == 0:  # a person drains it, or ends that; one such node is enough
        yield one._replace(theirs=not one.theirs, does=LOOK if one.theirs and one.sick else REST)
    if one.mark == HELD:
        yield one._replace(does=LOOK)


def looks(number, one, nodes, policy, decide):
    if one.theirs or one.mark == OUT:
        yield one._replace(does=REST)
        return
    rows = [
        Row(f"n{place}", NONE if other.theirs else other.mark, 2 * policy.window_s if other.old else 0.0)
        for place, other in enumerate(nodes)
    ]
    found = decide(f"n{number}", rows, len(nodes), policy).do
    wanted = {CLAIM: GOING, WAIT: WAITS, HOLD: HELD}
    for do in {found, HOLD} if found == WAIT else {found}:  # it waits for a while, and then no more
        yield one._replace(does=LEAVE if do == DRAIN else f"write {wanted[do]}")


def broken(nodes, policy):
    """What must never be, in words; '' where all is well."""
    size = len(nodes)
    out = [one for one in nodes if one.mark == OUT]
    budget, cap = rule.most(size, policy.budget_percent), rule.most(size, policy.breaker_percent)
    if sum(not one.old for one in out) > budget:
        return "over the budget"
    if len(out) > max(budget, cap):
        return "over the breaker's share"
    for one in nodes:
        if one.sick and one.does == REST and not one.theirs and one.mark not in (OUT, HELD, TOLD):
            return "in service with an open claim that nobody knows of"
    return ""


def explore(count, policy, decide=rule.decide):
    """(states reached, first trouble, states from which no way leads back to a fleet in service)."""
    start = tuple(Node() for _ in range(count))
    before, waiting, trouble = {start: []}, deque([start]), ""
    while waiting and not trouble:
        now = waiting.popleft()
        for after in steps(now, policy, decide):
            if after not in before:
                before[after] = []
                waiting.append(after)
                trouble = trouble or broken(after, policy)
            before[after].append(now)
    good, ends = {start}, deque([start])
    while ends:
        for earlier in before[ends.popleft()]:
            if earlier not in good:
                good.add(earlier)
                ends.append(earlier)
    return len(before), trouble, len(before) - len(good)


@pytest.mark.parametrize(("count", "policy"), [(2, RulePolicy()), (3, RulePolicy()), (3, RulePolicy(67, 67))])
def test_never_over_the_budget_never_unknown_in_service_always_an_end(count, policy):
    states, trouble, stuck = explore(count, policy)
    assert (trouble, stuck) == ("", 0)
    assert states > 1000, "the model itself must be able to move"


def hasty(me, rows, size, policy):
    """Leaves on what it read before it marked."""
    found = rule.decide(me, rows, size, policy)
    return Decision(DRAIN) if found.do == CLAIM else found


def blind(me, rows, size, policy):
    """Counts who is out and not who is on the way."""
    return rule.decide(me, [row for row in rows if row.mark != GOING or row.node == me], size, policy)


def forgetful(me, rows, size, policy):
    """Takes the next after each window, to the last node."""
    return rule.decide(me, [row for row in rows if row.age_s <= policy.window_s], size, policy)


@pytest.mark.parametrize("wrong", [hasty, blind, forgetful])
def test_the_model_finds_a_rule_that_is_wrong(wrong):
    assert "over" in explore(2, RulePolicy(), wrong)[1]


@pytest.mark.parametrize(
    ("rows", "size", "do"),
    [
        ([], 8, CLAIM),
        ([Row("n1", GOING)], 8, DRAIN),
        ([Row("n1", GOING), Row("n2", GOING)], 8, WAIT),
        ([Row("n2", OUT, 30)], 8, HOLD),
        ([Row("n2", OUT, 30)], 20, CLAIM),
        ([Row("n2", OUT, 700)], 8, CLAIM),
        ([Row("n2", OUT, -3600)], 8, HOLD),
        ([Row("n2", OUT, 700), Row("n3", OUT, 7000)], 8, HOLD),
        ([Row("n2", HELD)], 8, HOLD),
        ([Row("n1", HELD)], 8, HOLD),
        ([Row("n1", WAITS), Row("n0", WAITS)], 8, WAIT),
        ([Row("n1", WAITS), Row("n2", WAITS)], 8, CLAIM),
        ([Row("n2", WAITS)], 8, WAIT),
    ],
)
def test_decide(rows, size, do):
    assert rule.decide("n1", rows, size, RulePolicy()).do == do


def test_a_share_of_nothing_takes_nothing_out():
    assert rule.decide("n1", [Row("n1", GOING)], 8, RulePolicy(budget_percent=0)).do == HOLD


def test_after_a_persons_word_suspects_hold_up_nobody():
    rows = [Row("n1", GOING), Row("n2", HELD)]
    assert rule.decide("n1", rows, 8, RulePolicy(), by_person=True).do == DRAIN
    assert rule.decide("n1", [*rows, Row("n3", OUT, 30)], 8, RulePolicy(), by_person=True).do == HOLD


def test_one_suspect_says_so_for_all():
    rows = [Row("n2", HELD), Row("n3", HELD), Row("n1", OUT, 5)]
    assert [rule.tells(name, rows) for name in ("n1", "n2", "n3")] == [False, True, False]
    assert not rule.tells("n0", [*rows, Row("n4", TOLD), Row("n0", HELD)])


def test_each_actors_own_code_in_random_order():
    assert set(sequences.run(3000, 31)) >= {"watch", "prolog", "health", "round", "kill", "person", "away", "let_go"}
