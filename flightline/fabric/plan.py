"""Which pairs come next, until nothing more can be learnt. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .blame import INTERMITTENT, UNCLEAR, blames
from .pairs import Pair, Tested, check_round, first_round, further_round, second_round, third_round

ROUNDS = 3
"""Enough to name a bad node or path that is bad each time."""
MOST_ROUNDS = 6
"""What is bad only now and then gets as many more; then both ends of the pair stay named."""


def next_round(
    ring: Sequence[str], rounds: Sequence[Sequence[Tested]], groups: Mapping[str, str] | None = None
) -> list[Pair]:
    """The next round's pairs; none when the answer stands. rounds: the results so far, round by round.

    Raises ValueError when a name stands twice in the ring.
    """
    if len(set(ring)) != len(ring):
        raise ValueError("saw a node twice in the ring, wanted each once")
    tested = [test for results in rounds for test in results]
    if len(ring) < 2 or len(rounds) >= MOST_ROUNDS:
        return []
    if len(rounds) < ROUNDS:
        first_two = (first_round, second_round)
        pairs = first_two[len(rounds)](ring) if len(rounds) < 2 else third_round(ring, tested)
    else:
        pairs = further_round(ring, tested, _doubtful(ring, tested, groups))
    check_round(pairs)
    return pairs


def _doubtful(ring: Sequence[str], tested: Sequence[Tested], groups: Mapping[str, str] | None) -> list[str]:
    """Nodes named together with another because nothing told them apart."""
    unclear = [blame for blame in blames(tested, groups) if blame.kind in (INTERMITTENT, UNCLEAR)]
    named = {node for blame in unclear if len(blame.nodes) > 1 for node in blame.nodes}
    return [node for node in ring if node in named]
