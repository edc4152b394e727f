"""A criterion learned from nodes known to be good: what they reached, and how far from it a node may be. Pure.

It is of one instance type, grows old, and needs enough nodes: a baseline that does not fit is refused, not stretched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from math import isfinite
from statistics import median
from typing import Any

from flightline_node.model import Finding, Remedy, Status

from ..record.reasons import BEYOND, LACKING, NOTHING_SHARED
from .checks import BASELINE
from .outliers import LEAST_RELATIVE, MAD_TO_SIGMA, SCORE_LIMIT
from .stragglers import BAD, BAD_ENDS, HIGH, LOW

SCHEMA = "flightline-baseline/1"
FEWEST_NODES = 8
"""With fewer, one bad node among them moves the median and the spread."""
FEWEST_PAIRS = 8
OLD_DAYS = 90
"""Site choice: a driver, a firmware or a library is usually replaced within a quarter, and what is reached with it."""
SIGMAS = SCORE_LIMIT
LEAST_SHARE = 5 * LEAST_RELATIVE
"""Of the median, which a node may always lack: runs of one good node differ by a few percent."""
SIDES: Mapping[str, int] = {**BAD, "fs_write_mb_s": LOW, "fs_read_mb_s": LOW}
BANDWIDTH = "bandwidth_"
SIDE_ENDS: Mapping[str, int] = {**BAD_ENDS, "_gb_s": LOW}


class BaselineError(ValueError):
    """A baseline that must not be used, or known-good nodes that make none: saw, wanted, do."""


@dataclass(frozen=True)
class Limit:
    """What a measure of one device may be. limit: in its unit, the least or the most by side (-1 or 1)."""

    measure: str
    unit: str
    side: int
    nodes: int
    values: int
    median: float
    sigma: float
    limit: float

    def broken_by(self, value: float) -> bool:
        """Too little, or too much."""
        return (value - self.limit) * self.side > 0


@dataclass(frozen=True)
class Baseline:
    """What known-good nodes reached. made_at: ISO 8601, UTC. pairs: collective -> GB/s that pairs of nodes reached."""

    instance_type: str
    made_at: str
    source: str
    nodes: tuple[str, ...]
    limits: tuple[Limit, ...] = ()
    pairs: tuple[Limit, ...] = ()
    schema: str = field(default=SCHEMA)

    def to_dict(self) -> dict[str, Any]:
        """It as JSON has it."""
        return asdict(self)

    @property
    def pair_floors(self) -> dict[str, float]:
        """Collective -> GB/s that a pair must reach."""
        return {one.measure: one.limit for one in self.pairs}


def side_of(measure: str) -> int:
    """The direction in which a measure is bad; 0 for one that says nothing of speed."""
    if measure.startswith(BANDWIDTH):
        return LOW
    return SIDES.get(measure) or next((side for end, side in SIDE_ENDS.items() if measure.endswith(end)), 0)


def limit_of(measure: str, unit: str, side: int, nodes: int, values: Sequence[float]) -> Limit:
    """Median less five robust standard deviations, at least five percent. Raises ValueError for no values."""
    middle = median(values)
    sigma = MAD_TO_SIGMA * median(abs(value - middle) for value in values)
    most = middle + side * max(SIGMAS * sigma, LEAST_SHARE * abs(middle))
    return Limit(measure, unit, side, nodes, len(values), middle, round(sigma, 6), round(most, 6))


def learn(records: Iterable[Mapping[str, Any]], instance_type: str, good: Iterable[str]) -> tuple[Limit, ...]:
    """The limits of every measure of speed that enough known-good nodes have."""
    chosen = set(good)
    values: dict[str, list[float]] = {}
    units: dict[str, str] = {}
    seen: dict[str, set[str]] = {}
    for record in records:
        if record.get("host") not in chosen or record.get("instance_type") != instance_type:
            continue
        for name, entry in (record.get("measures") or {}).items():
            given = [value for value in (entry.get("values") or {}).values() if _is_number(value)]
            if given and side_of(name):
                values.setdefault(name, []).extend(given)
                seen.setdefault(name, set()).add(str(record["host"]))
                units[name] = str(entry.get("unit") or "")
    return tuple(
        limit_of(name, units[name], side_of(name), len(seen[name]), values[name])
        for name in sorted(values)
        if len(seen[name]) >= FEWEST_NODES
    )


def learn_pairs(result: Mapping[str, Any], good: Iterable[str]) -> tuple[Limit, ...]:
    """The limit of each collective whose pairs a fabric test measured among known-good nodes."""
    chosen = set(good)
    tests = [one for tests in result.get("rounds") or () for one in tests if set(one.get("nodes") or ()) <= chosen]
    figures = [one["gb_s"] for one in tests if not one.get("slow") and _is_number(one.get("gb_s"))]
    nodes = {node for one in tests for node in one["nodes"]}
    if len(figures) < FEWEST_PAIRS or len(nodes) < FEWEST_NODES:
        return ()
    return (limit_of(str(result["collective"]), "GB/s", LOW, len(nodes), figures),)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def checked(baseline: Baseline) -> Baseline:
    """The baseline. Raises BaselineError when it was learned from too little."""
    if len(baseline.nodes) < FEWEST_NODES:
        raise BaselineError(f"saw {len(baseline.nodes)} known-good nodes of {baseline.instance_type}, "
                            f"wanted {FEWEST_NODES} or more; do: save it from a run over more nodes")  # fmt: skip
    if not baseline.limits and not baseline.pairs:
        raise BaselineError(
            f"saw no measure of speed on {FEWEST_NODES} nodes, wanted one; "
            "do: save it from a run at level standard or deep, or from fabric --pairs"
        )
    return baseline


def read(given: Any) -> Baseline:
    """A baseline from its JSON. Raises BaselineError."""
    try:
        if given["schema"] != SCHEMA:
            raise BaselineError(f"saw the schema {given['schema']!r}, wanted {SCHEMA}; do: save the baseline again")
        made = Baseline(
            str(given["instance_type"]), str(given["made_at"]), str(given["source"]), tuple(map(str, given["nodes"])),
            tuple(_limit(one) for one in given["limits"]), tuple(_limit(one) for one in given["pairs"]),
        )  # fmt: skip
        _made(made)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, BaselineError):
            raise
        raise BaselineError(f"saw no baseline ({error}), wanted one; do: flightline baseline save") from error
    return checked(made)


def _limit(given: Mapping[str, Any]) -> Limit:
    one = Limit(**given)
    numbers = (one.median, one.sigma, one.limit)
    if one.side not in (LOW, HIGH) or not all(_is_number(value) for value in numbers):
        raise ValueError(f"a limit of {one.measure} that is no number")
    return one


def _made(baseline: Baseline) -> datetime:
    made = datetime.fromisoformat(baseline.made_at.replace("Z", "+00:00"))
    return made if made.tzinfo else made.replace(tzinfo=timezone.utc)


def unfit(baseline: Baseline, instance_type: str, now: datetime, old_days: int = OLD_DAYS) -> str:
    """Why it must not judge nodes of a type now; '' when it may."""
    if baseline.instance_type != instance_type:
        return (f"the baseline in use is of {baseline.instance_type}, wanted {instance_type}; "
                "do: flightline baseline save of these nodes")  # fmt: skip
    days = (now - _made(baseline)).days
    if days > old_days:
        return (f"the baseline of {instance_type} is {days} days old, wanted {old_days} at most; "
                "do: flightline baseline save, or baseline use --none")  # fmt: skip
    if days < -1:
        return f"the baseline of {instance_type} is from {baseline.made_at}, which is not yet; do: look at the clocks"
    return ""


def judge(baseline: Baseline, measures: Mapping[str, Mapping[str, Any]], measured: Iterable[str] = ()) -> list[Finding]:
    """A node's measures against it: what falls short fails; what other nodes of the run have and it lacks is unknown.

    measured: what any node of the run has; a run at a lower level measures less.
    """
    others = set(measured)
    found: list[Finding] = []
    absent = []
    for one in baseline.limits:
        given = (measures.get(one.measure) or {}).get("values") or {}
        values = {device: value for device, value in given.items() if _is_number(value)}
        if not values and one.measure in others:
            absent.append(one.measure)
        found += [_broken(one, device, value) for device, value in values.items() if one.broken_by(value)]
    if absent:
        text = f"not measured here, and other nodes have it: {', '.join(absent)}"
        found.append(Finding(BASELINE, Status.UNKNOWN, text, LACKING.remedy, reason=LACKING.id))
    elif not others.intersection(one.measure for one in baseline.limits):
        text = "this run measured nothing that the baseline is about"
        found.append(Finding(BASELINE, Status.SKIP, text, Remedy.NONE, reason=NOTHING_SHARED.id))
    if not found:
        text = f"{len(baseline.limits)} measures like those of {len(baseline.nodes)} known-good nodes"
        found.append(Finding(BASELINE, Status.PASS, text, Remedy.NONE))
    return found


def _broken(one: Limit, device: str, value: float) -> Finding:
    where = f"{device}: " if device else ""
    far = f"{abs(value - one.median) / abs(one.median):.0%} off" if one.median else "off"
    text = (f"{where}{one.measure} {value:g} {one.unit}, {far} the known-good nodes' median {one.median:g}, "
            f"wanted {one.limit:g} at {'least' if one.side == LOW else 'most'}")  # fmt: skip
    return Finding(
        BASELINE, Status.FAIL, text, Remedy.INVESTIGATE, device={"name": device} if device else {}, measured=value,
        expected=one.limit, unit=one.unit, reason=BEYOND.id,
    )  # fmt: skip
