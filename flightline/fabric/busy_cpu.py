"""What was measured while the node's CPU was short, and would name somebody: it stands only where it stands out. Pure.

A busy CPU slows tests down at random: a pair that reaches less now and then shows the load, not the network. A fault
shows each time, and far from everybody's figures, because the pairs of a round share the load.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from .blame import INTERMITTENT, NODE, PATH, UNCLEAR, Blame
from .criterion import Measured
from .pairs import Tested

GAP = 0.9
"""The best figure of who is named, of the worst of who passed: closer than that a busy machine alone explains it."""


def discounted(
    found: Sequence[Blame], measured: Sequence[Sequence[Measured]], rounds: Sequence[Sequence[Tested]]
) -> list[Blame]:
    """The blames; those that load alone may explain are unclear, and say so."""
    tests = [
        both for played, results in zip(measured, rounds, strict=True) for both in zip(played, results, strict=True)
    ]
    passed = [_figure(one) for one, test in tests if test.good and one.sent]
    return [_discounted(blame, list(_against(blame, tests)), passed) for blame in found]


def _discounted(blame: Blame, failed: Sequence[Measured], passed: Sequence[float]) -> Blame:
    if blame.kind not in (NODE, PATH, INTERMITTENT) or not failed:
        return blame
    # What broke or gave wrong results is no matter of speed.
    if any(not one.sent or one.wrong or one.transport for one in failed) or not any(one.busy for one in failed):
        return blame
    apart = bool(passed) and max(map(_figure, failed)) <= GAP * min(passed)
    if apart and blame.kind != INTERMITTENT:
        return blame
    seen = f"measured while tasks waited for a CPU {max(one.busy_share for one in failed):.0%} of the time"
    return replace(blame, kind=UNCLEAR, why=f"{blame.why}; {seen}: measure again on idle nodes", sending="")


def _against(blame: Blame, tests: Iterable[tuple[Measured, Tested]]) -> Iterable[Measured]:
    """The tests that failed and speak against who is named."""
    for one, test in tests:
        named = set(test.pair) & set(blame.nodes)
        if not test.good and named and (len(blame.nodes) == 1 or len(named) == len(blame.nodes)):
            yield one


def _figure(one: Measured) -> float:
    return min(one.sent.values(), default=0.0)
