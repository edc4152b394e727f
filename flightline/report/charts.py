"""Geometry of the small histograms: numbers in, coordinates out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flightline.fleet.result import Distribution

WIDTH, HEIGHT = 300.0, 64.0
LEAST_BAR = 1.5  # a bin of one among thousands must still be seen


@dataclass(frozen=True)
class Bar:
    """One bin, in SVG units from the top left."""

    x: float
    y: float
    width: float
    height: float
    label: str


@dataclass(frozen=True)
class Histogram:
    """What the template draws; marks are the x of the outliers."""

    bars: list[Bar]
    median: float
    marks: list[float]
    box: tuple[float, float]


def is_flat(item: Distribution) -> bool:
    """Tell whether there is nothing to draw: one value everywhere, or numbers that cannot be drawn."""
    low, high = ends(item)
    return not (math.isfinite(low) and math.isfinite(high) and high > low and any(item.bins))


def ends(item: Distribution) -> tuple[float, float]:
    """Minimum and maximum."""
    return (float(item.quantiles[0]), float(item.quantiles[-1])) if item.quantiles else (math.nan, math.nan)


def median(item: Distribution) -> float:
    """Return the middle quantile."""
    return float(item.quantiles[len(item.quantiles) // 2]) if item.quantiles else math.nan


def histogram(item: Distribution) -> Histogram:
    """Bars, median and outliers of a distribution that is not flat."""
    low, high = ends(item)
    values = [outlier.value for outlier in item.outliers if math.isfinite(outlier.value)]
    return Histogram(
        _bars(item.bins, low, high),
        _place(median(item), low, high),
        sorted({_place(value, low, high) for value in values}),
        (WIDTH, HEIGHT),
    )


def _place(value: float, low: float, high: float) -> float:
    return round(min(max((value - low) / (high - low), 0.0), 1.0) * WIDTH, 1)


def _bars(bins: Sequence[int], low: float, high: float) -> list[Bar]:
    tallest, step = max(bins), WIDTH / len(bins)
    bars: list[Bar] = []
    for number, size in enumerate(bins):
        if size:
            height = max(size / tallest * HEIGHT, LEAST_BAR)
            left, right = (low + (high - low) * edge / len(bins) for edge in (number, number + 1))
            label = f"{left:.4g} to {right:.4g}: {size:,}"
            x, y, width = round(number * step, 1), round(HEIGHT - height, 1), round(max(step - 1, 0.5), 1)
            bars.append(Bar(x, y, width, round(height, 1), label))
    return bars
