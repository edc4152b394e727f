"""Which nodes to test together: rounds of parallel pairs over a ring of the nodes.

The ring is the order of the collective's ranks, so its edges are the paths that the collective uses. The first round
tests every second edge, the second round the others: after both each node was tested with two neighbours. The third
round depends on what was seen: a node that failed with both meets one that never failed, a pair that failed alone is
tested again, and everybody else meets a node from the other half of the ring, which shows a bad spine.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd, isqrt
from typing import NamedTuple


class Pair(NamedTuple):
    """Two nodes that are tested together; first starts the test."""

    first: str
    second: str

    @property
    def key(self) -> frozenset[str]:
        """The same for both orders."""
        return frozenset(self)


@dataclass(frozen=True)
class Tested:
    """What became of a pair. slow: who sent too slowly; both when the test did not end or gave wrong results."""

    pair: Pair
    slow: frozenset[str]
    why: str = ""

    @property
    def good(self) -> bool:
        """Nothing was wrong."""
        return not self.slow


def first_round(ring: Sequence[str]) -> list[Pair]:
    """Every second edge of the ring, from the first node on."""
    return [Pair(ring[at], ring[at + 1]) for at in range(0, len(ring) - 1, 2)]


def second_round(ring: Sequence[str]) -> list[Pair]:
    """The other edges; of an odd ring the closing edge is left for the third round. Two nodes meet again."""
    if len(ring) < 3:
        return first_round(ring)
    pairs = [Pair(ring[at], ring[at + 1]) for at in range(1, len(ring) - 1, 2)]
    return pairs if len(ring) % 2 else [*pairs, Pair(ring[-1], ring[0])]


@dataclass(frozen=True)
class PairReadings:
    """What two rounds say of each node and pair."""

    passed: Mapping[str, set[str]]
    failed: Mapping[str, set[str]]
    failures: tuple[Tested, ...]

    @classmethod
    def of(cls, tested: Iterable[Tested]) -> PairReadings:
        """Sum tests up."""
        passed: dict[str, set[str]] = defaultdict(set)
        failed: dict[str, set[str]] = defaultdict(set)
        failures = []
        for test in tested:
            for one, other in (test.pair, test.pair[::-1]):
                (passed if test.good else failed)[one].add(other)
            if not test.good:
                failures.append(test)
        return cls(passed, failed, tuple(failures))

    def proven(self, node: str) -> bool:
        """It passed, and never failed."""
        return bool(self.passed.get(node)) and not self.failed.get(node)


def third_round(ring: Sequence[str], tested: Iterable[Tested]) -> list[Pair]:
    """Suspects with proven nodes, lone failures again, the rest across the ring. Each node at most once."""
    seen = PairReadings.of(tested)
    again = [test.pair for test in seen.failures if _alone(test.pair, seen)]
    taken = {node for pair in again for node in pair}
    # Where too few are proven, those first whom nobody has cleared.
    suspects = sorted(
        (node for node in ring if seen.failed.get(node) and node not in taken),
        key=lambda node: bool(seen.passed.get(node)),
    )
    free = [node for node in ring if seen.proven(node)]
    met = list(zip(suspects, _partners(free, len(suspects)), strict=False))
    met += _among(suspects[len(met) :], seen)
    taken |= {node for pair in met for node in pair} | set(suspects)
    rest = [node for node in ring if node not in taken]
    return [*again, *(Pair(*pair) for pair in met), *_closing(ring, rest)]


def _alone(pair: Pair, seen: PairReadings) -> bool:
    """Both ends passed elsewhere: a path is to blame, or chance."""
    return all(seen.passed.get(node) and len(seen.failed[node]) == 1 for node in pair)


def _among(suspects: Sequence[str], seen: PairReadings) -> list[tuple[str, str]]:
    """Where too few are proven: suspects with suspects that they have not met."""
    left, pairs = list(suspects), []
    while left:
        one = left.pop(0)
        other = next((node for node in left if node not in seen.failed[one]), None)
        if other:
            left.remove(other)
            pairs.append((one, other))
    return pairs


def _partners(free: Sequence[str], count: int) -> list[str]:
    """Spread over the ring, so that suspects who sit together do not share one neighbourhood again."""
    if not free or not count:
        return []
    step = max(len(free) // count, 1)
    return list(free[::step])[:count]


def _closing(ring: Sequence[str], rest: Sequence[str]) -> list[Pair]:
    """The closing edge of an odd ring if nobody else needs its ends; each other node with one half a ring away."""
    first: list[Pair] = []
    if len(ring) > 2 and len(ring) % 2 and {ring[0], ring[-1]} <= set(rest):
        first = [Pair(ring[-1], ring[0])]
        rest = [node for node in rest if node not in first[0]]
    half = len(rest) // 2
    step = _stride(half)
    return first + [Pair(rest[at], rest[half + at * step % half]) for at in range(half)]


def _stride(half: int) -> int:
    """Neighbours meet nodes of different parts of the network: else a bad part and the part it met look the same."""
    step = max(isqrt(half), half // 3)
    return next((at for at in range(step, 0, -1) if gcd(at, half) == 1), 1)


def further_round(ring: Sequence[str], tested: Sequence[Tested], doubtful: Iterable[str]) -> list[Pair]:
    """Pairs that failed the only time again; each other doubtful node with a proven one, new to it if possible."""
    seen = PairReadings.of(tested)
    free = [node for node in ring if seen.proven(node)]
    pairs = _once_only(tested, seen)
    taken = {node for pair in pairs for node in pair}
    for node in doubtful:
        if node in taken:
            continue
        met = seen.passed.get(node, set()) | seen.failed.get(node, set())
        partner = next((other for other in free if other not in met), free[0] if free else None)
        if partner:
            free.remove(partner)
            pairs.append(Pair(node, partner))
    return pairs


def _once_only(tested: Sequence[Tested], seen: PairReadings) -> list[Pair]:
    """Pairs tested once, in which both ends pass with others and fail with each other: chance is not ruled out."""
    times = Counter(test.pair.key for test in tested)
    return [test.pair for test in seen.failures if times[test.pair.key] == 1 and _alone(test.pair, seen)]


def check_round(pairs: Sequence[Pair]) -> None:
    """Raise ValueError when a node is in two pairs of a round, or meets itself."""
    counted = Counter(node for pair in pairs for node in pair)
    twice = [node for node, count in counted.items() if count > 1]
    if twice:
        raise ValueError(f"saw {', '.join(sorted(twice))} in two pairs of one round, wanted each node once")
