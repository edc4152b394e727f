"""Numbers over the fleet: their distribution, and the nodes far from the rest.

An outlier is a hint where to look, never a verdict: it is compared with its peers, not with an expectation.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import fsum, isfinite
from typing import Any

from .result import Distribution, Outlier

BINS = 24
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
FEWEST = 5
"""With fewer values no middle can be told from an edge."""

SCORE_LIMIT = 5.0
"""Robust standard deviations; 3.5 is usual (Iglewicz and Hoaglin, 1993), but ten thousand nodes give many."""

LEAST_RELATIVE = 0.01
"""Of the median: where values hardly spread, a difference this small is not worth a look."""

MAD_TO_SIGMA = 1.4826
MEAN_AD_TO_SIGMA = 1.2533
MOST_OUTLIERS = 100


@dataclass
class Series:
    """One measure of one instance type. values: of all nodes, one after the other.

    starts[n]: where the values of hosts[n] begin; devices[n]: their devices, in the same order.
    """

    instance_type: str
    name: str
    unit: str
    values: array[float] = field(default_factory=lambda: array("d"))
    starts: array[int] = field(default_factory=lambda: array("L"))
    hosts: list[str] = field(default_factory=list)
    devices: list[tuple[str, ...]] = field(default_factory=list)

    def place(self, at: int) -> tuple[str, str]:
        """Host and device of the value at a position."""
        node = bisect_right(self.starts, at) - 1
        return self.hosts[node], self.devices[node][at - self.starts[node]]


class Samples:
    """Every measured value, packed: ten thousand nodes have millions."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str], Series] = {}
        self._devices: dict[tuple[str, ...], tuple[str, ...]] = {}

    def add(self, host: str, instance_type: str, measures: Mapping[str, Mapping[str, Any]]) -> None:
        """Take one node's measures, as its record has them; what is not a finite number is left out."""
        for name, entry in measures.items():
            given = entry.get("values") or {}
            names, values = tuple(given), given.values()
            if not _all_finite(values):
                good = {key: value for key, value in given.items() if _all_finite([value])}
                names, values = tuple(good), good.values()
            if not values:
                continue
            key = (instance_type, name)
            series = self._series.get(key)
            if series is None:
                series = self._series[key] = Series(instance_type, name, str(entry.get("unit") or ""))
            series.starts.append(len(series.values))
            series.hosts.append(host)
            series.devices.append(self._devices.setdefault(names, names))
            series.values.extend(values)

    def series(self) -> list[Series]:
        """Every series, by measure and instance type."""
        return [self._series[key] for key in sorted(self._series, key=lambda key: (key[1], key[0]))]


def _all_finite(values: Collection[Any]) -> bool:
    try:
        return isfinite(fsum(values))
    except (TypeError, ValueError, OverflowError):
        return False


def distributions(samples: Samples) -> list[Distribution]:
    """One distribution per measure, and per instance type where the fleet has several."""
    everything = samples.series()
    several = len({series.instance_type for series in everything}) > 1
    found = []
    for series in everything:
        ordered = sorted(series.values)
        outliers = [
            Outlier(*series.place(at), series.values[at], round(score, 1)) for at, score in _far(series.values, ordered)
        ]
        label = f"{series.name} ({series.instance_type})" if several else series.name
        quantiles = tuple(_quantile(ordered, q) for q in QUANTILES)
        found.append(Distribution(label, series.unit, len(ordered), quantiles, _bins(ordered), outliers))
    return found


def _quantile(ordered: Sequence[float], q: float) -> float:
    """Linear between the two nearest values."""
    place = q * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _bins(ordered: Sequence[float]) -> list[int]:
    low, width = ordered[0], (ordered[-1] - ordered[0]) / BINS
    if width <= 0:
        return [len(ordered)]
    edges = [bisect_left(ordered, low + width * number) for number in range(1, BINS)]
    return [high - below for below, high in pairwise([0, *edges, len(ordered)])]


def _far(values: Sequence[float], ordered: Sequence[float]) -> list[tuple[int, float]]:
    """(position, score) of the values far from the median, farthest first, at most MOST_OUTLIERS."""
    if len(ordered) < FEWEST or ordered[0] == ordered[-1]:
        return []
    median = _quantile(ordered, 0.5)
    deviations = sorted(abs(value - median) for value in ordered)
    # More than half the values equal: the median deviation is 0 and says nothing; the mean one still does.
    sigma = MAD_TO_SIGMA * _quantile(deviations, 0.5) or MEAN_AD_TO_SIGMA * sum(deviations) / len(deviations)
    least = max(SCORE_LIMIT * sigma, LEAST_RELATIVE * abs(median))
    if median - least <= ordered[0] and ordered[-1] <= median + least:
        return []
    far = [(at, (value - median) / sigma) for at, value in enumerate(values) if abs(value - median) > least]
    return sorted(far, key=lambda item: -abs(item[1]))[:MOST_OUTLIERS]
