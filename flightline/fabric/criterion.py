"""From a pair's figures to a judgement: a floor for the instance type, and what the better pairs of the run reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from statistics import quantiles

from .pairs import Pair, Tested

LEAST_SHARE = 0.8
"""Of the reference: healthy pairs of one type are expected within a few percent of each other."""
SIZE_SHARE = 0.5
"""At a smaller message: good pairs may change the algorithm at different sizes, and then lose a third at most."""
BUSY_SHARE = 0.5
"""From where on load may explain a figure: half the time more tasks than CPUs (Linux pressure stall, "some")."""
OF_TYPE = "the floor of the instance type"
OF_BASELINE = "like pairs of known-good nodes"
FEWEST = 4
"""With fewer pairs there is no reference, and only the floor judges."""


@dataclass(frozen=True)
class Measured:
    """One test of one pair.

    sent: GB/s (10^9) that each node sent, by name; empty when the test gave no figure.
    wrong: results that were not what they should be; error: why it did not end, or '' when it did.
    transport: '' when the log shows the wanted one, else what it shows. busy_share: of the test's time in which a task
    of the node that started it waited for a CPU. sizes: bytes of a message -> GB/s, of each size that shows the links.
    """

    pair: Pair
    sent: dict[str, float]
    wrong: int = 0
    error: str = ""
    transport: str = ""
    busy_share: float = 0.0
    sizes: Mapping[int, float] = field(default_factory=dict)

    @property
    def busy(self) -> bool:
        """The node's CPU was short while it was measured."""
        return self.busy_share >= BUSY_SHARE


def reference(figures: Sequence[float]) -> float | None:
    """GB/s that the better pairs reach: the upper quartile, right while half of them are bad; None for few."""
    good = [value for value in figures if isfinite(value) and value > 0]
    return quantiles(good, n=4, method="inclusive")[2] if len(good) >= FEWEST else None


def least_of(
    measures: Sequence[Measured],
    floor_gb_s: float | None = None,
    least_share: float = LEAST_SHARE,
    floor_is: str = OF_TYPE,
) -> tuple[float, str]:
    """GB/s that a pair must send in each direction, 0 where nothing says it; and why so much."""
    usual = reference([value for measure in measures for value in measure.sent.values()])
    least = max(floor_gb_s or 0.0, (usual or 0.0) * least_share)
    of_peers = f"{least_share:.0%} of what the better pairs reach"
    return least, floor_is if least == floor_gb_s else of_peers


def judge(
    measures: Sequence[Measured],
    floor_gb_s: float | None = None,
    least_share: float = LEAST_SHARE,
    floor_is: str = OF_TYPE,
) -> list[Tested]:
    """Each pair's result. floor_gb_s: what a pair must send in each direction, where known; floor_is: of what."""
    least, basis = least_of(measures, floor_gb_s, least_share, floor_is)
    sizes = {size for measure in measures for size in measure.sizes}
    usual = {size: reference([one.sizes[size] for one in measures if size in one.sizes]) for size in sizes}
    at_size = {size: value * SIZE_SHARE for size, value in usual.items() if value}
    return [_judged(measure, least, basis, at_size) for measure in measures]


def _judged(measure: Measured, least: float, basis: str, at_size: Mapping[int, float]) -> Tested:
    broken = _broken(measure, least)
    if broken:
        return Tested(measure.pair, frozenset(measure.pair), broken)
    slow = {node: value for node, value in measure.sent.items() if value < least}
    if not slow:
        return _by_size(measure, at_size)
    seen = ", ".join(f"{node} sent {value:.3g} GB/s" for node, value in sorted(slow.items()))
    if len(slow) == len(set(measure.sent)) and len(set(slow.values())) == 1:
        seen = f"{' and '.join(sorted(slow))} reached {next(iter(slow.values())):.3g} GB/s"
    return Tested(measure.pair, frozenset(slow), f"{seen}, wanted {least:.3g} ({basis})")


def _by_size(measure: Measured, least: Mapping[int, float]) -> Tested:
    """A pair that reaches its bandwidth at the largest message, and not at another."""
    for size, value in sorted(measure.sizes.items()):
        if value < least.get(size, 0.0):
            seen = f"{' and '.join(sorted(measure.pair))} reached {value:.3g} GB/s at {size >> 20} MiB"
            why = f"{seen}, wanted {least[size]:.3g} ({SIZE_SHARE:.0%} of what the better pairs reach)"
            return Tested(measure.pair, frozenset(measure.pair), why)
    return Tested(measure.pair, frozenset())


def _broken(measure: Measured, least: float) -> str:
    """Why the test shows nothing good whatever its bandwidth; '' when it may be judged by it."""
    if measure.error:
        return measure.error
    if measure.wrong:
        return f"{measure.wrong} wrong results, wanted 0"
    if measure.transport:
        return f"the transport was {measure.transport}"
    if set(measure.sent) != set(measure.pair) or not all(isfinite(value) for value in measure.sent.values()):
        return f"no bandwidth for each direction, saw {measure.sent or 'nothing'}"
    if not least:
        return "nothing to hold the bandwidth against: too few pairs, and no floor is known for the instance type"
    return ""
