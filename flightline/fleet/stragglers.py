"""Nodes and GPUs that are slower or hotter under load than their fleet: the outliers that a job would wait for.

A warning, never a failure: an outlier is compared with its peers, and says nothing of what is enough. The floors of the
instance type fail a node (docs/decisions/verdict.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from flightline_node.model import Remedy, Status

from ..record.reasons import FAR_OFF
from .checks import STRAGGLER
from .result import Distribution, Outlier

LOW, HIGH = -1, 1
BAD: dict[str, int] = {
    "gpu_load_tflops": LOW,
    "gpu_load_sm_mhz": LOW,
    "gpu_load_temperature_c": HIGH,
}
"""Measure -> the direction in which an outlier costs a job time. The rate under load is one over a step's time."""
BAD_ENDS = {"_busbw": LOW, "_latency": HIGH}


@dataclass(frozen=True)
class Straggler:
    """One outlier in the direction that costs time. median: of its fleet, in the measure's unit."""

    measure: str
    unit: str
    outlier: Outlier
    median: float
    count: int

    @property
    def said(self) -> str:
        """What was seen, and how far from the others it is."""
        one, unit = self.outlier, f" {self.unit}" if self.unit else ""
        where = f"{one.device}: " if one.device else ""
        far = f"{abs(one.score):.1f} robust standard deviations {'below' if one.score < 0 else 'above'} the median"
        return f"{where}{self.measure} {one.value:g}{unit}, {far} of {self.count} values, {self.median:g}"

    def finding(self) -> dict[str, object]:
        """It as a finding of its node."""
        one = self.outlier
        return {
            "check": STRAGGLER, "status": str(Status.WARN), "message": self.said, "remedy": str(Remedy.INVESTIGATE),
            "device": {"name": one.device} if one.device else {}, "measured": one.value, "expected": self.median,
            "unit": self.unit, "evidence": [], "reason": FAR_OFF.id,
        }  # fmt: skip


def stragglers(distributions: Iterable[Distribution]) -> Iterator[Straggler]:
    """Every outlier of a measure that a job waits for, in the direction that costs time."""
    for item in distributions:
        name = item.name.partition(" ")[0]
        side = BAD.get(name) or next((side for end, side in BAD_ENDS.items() if name.endswith(end)), 0)
        for outlier in item.outliers:
            if side and outlier.score * side > 0:
                yield Straggler(name, item.unit, outlier, item.quantiles[3], item.count)
