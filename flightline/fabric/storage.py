"""The shared file system with all nodes at once: per-node spread, the sum, and the slow client by name.

Clients that write at the same moment share the servers' throughput about alike; one far below the others' median, in
two tries, is slow itself. The sum says what the file system gives; the site says what it should.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from statistics import median
from typing import Any

from flightline_node.model import Finding, Reason, Remedy, Status

from ..fleet.checks import STORAGE
from ..fleet.outliers import MAD_TO_SIGMA, SCORE_LIMIT
from ..fleet.together import HOST
from ..record import reasons
from .drive import RoundAnswer

WAYS = ("write", "read")
LEAST_SHARE = 0.5
"""Of the others' median: servers do not share fairly, so that less than this is far."""
FAR_SHARE = 0.05
"""Of the others' median: less than this is slow however far the others are from each other."""
FEWEST = 3
"""With two nodes nobody knows which is the slow one."""
LEAST_OF_SUM = 0.8
"""Of the file system's throughput; FSx for Lustre reaches its figure with large blocks and enough clients."""
LATEST_S = 2.0
"""A node that began later measured another moment."""
TRIES = 2

Measure = Callable[[Sequence[str]], Mapping[str, RoundAnswer]]
"""Hosts -> what each measured, all at the same moment."""


@dataclass(frozen=True)
class SharedSpeeds:
    """One try. speeds: way -> host -> MB/s (10^6); troubles: host -> why it measured nothing; wrong: host -> where."""

    speeds: Mapping[str, Mapping[str, float]]
    troubles: Mapping[str, str] = field(default_factory=dict)
    wrong: Mapping[str, str] = field(default_factory=dict)

    def total(self, way: str) -> float:
        """MB/s of all nodes together."""
        return sum(self.speeds[way].values())

    def slow(self, way: str) -> dict[str, str]:
        """Host -> how far it is from the others."""
        values = self.speeds[way]
        if len(values) < FEWEST:
            return {}
        found = {}
        for host, value in values.items():
            # Among few nodes the slow one itself would widen the spread until nothing is far from it.
            others = [other for name, other in values.items() if name != host]
            middle = median(others)
            sigma = MAD_TO_SIGMA * median(abs(other - middle) for other in others)
            least = max(min(LEAST_SHARE * middle, middle - SCORE_LIMIT * sigma), FAR_SHARE * middle)
            if value < least or value <= 0:
                rest = f"the {len(others)} others at once reach {middle:g} in the median"
                found[host] = f"{way} at {value:g} MB/s, {rest}"
        return found


def read(answers: Mapping[str, RoundAnswer], hosts: Sequence[str]) -> SharedSpeeds:
    """What came back of a try; a node without a figure of both ways has a trouble."""
    speeds: dict[str, dict[str, float]] = {way: {} for way in WAYS}
    troubles, wrong = {}, {}
    for host in hosts:
        answer = answers.get(host, RoundAnswer(trouble="gave no answer"))
        why = answer.trouble or _trouble(answer.facts)
        if why:
            troubles[host] = why
            continue
        if answer.facts.get("wrong"):
            wrong[host] = str(answer.facts["wrong"])
        for way in WAYS:
            speeds[way][host] = float(answer.facts[f"{way}_mb_s"])
    return SharedSpeeds(speeds, troubles, wrong)


def _trouble(facts: Mapping[str, Any]) -> str:
    said = facts.get("error") or facts.get("refused")
    if said:
        return str(said)
    figures = [facts.get(f"{way}_mb_s") for way in WAYS]
    if not all(isinstance(one, (int, float)) and isfinite(one) for one in figures):
        return "gave no speed"
    late = facts.get("late_s")
    if not isinstance(late, (int, float)) or late > LATEST_S:
        return f"began {late} s after the others, wanted {LATEST_S:g} at most"
    return ""


def test(hosts: Sequence[str], measure: Measure, say: Callable[[str], None]) -> list[SharedSpeeds]:
    """Measure; where somebody is slow or late, once more."""
    tries: list[SharedSpeeds] = []
    while len(tries) < TRIES:
        one = read(measure(hosts), hosts)
        tries.append(one)
        say("storage: " + ", ".join(f"{way} {one.total(way):.0f} MB/s" for way in WAYS) + f" by {len(hosts)} nodes")
        if not one.troubles and not any(one.slow(way) for way in WAYS):
            break
    return tries


def findings(mount: str, hosts: Sequence[str], tries: Sequence[SharedSpeeds], wanted_mb_s: float = 0.0) -> list[Any]:
    """A finding for each node, and one for the file system where it gives less than it should. MB/s is 10^6."""
    found: list[Any] = []
    last = tries[-1]
    for host in hosts:
        wrong = next((one.wrong[host] for one in tries if host in one.wrong), "")
        slow = {way: last.slow(way)[host] for way in WAYS if all(host in one.slow(way) for one in tries)}
        if wrong:
            text = f"{mount}: what was read is not what was written, at {wrong}"
            found.append(of_node(host, Status.FAIL, text, reasons.WRONG_DATA))
        elif host in last.troubles:
            found.append(of_node(host, Status.UNKNOWN, f"{mount}: {last.troubles[host]}", reasons.NOT_MEASURED))
        elif slow and len(tries) == TRIES:
            way, text = next(iter(slow.items()))
            figures: dict[str, Any] = {
                "measured": last.speeds[way][host],
                "expected": round(median(last.speeds[way].values()), 1),
            }
            said = f"{mount}: {text}, twice"
            found.append(of_node(host, Status.FAIL, said, reasons.SLOW, **figures, unit="MB/s"))
        elif any(host in last.slow(way) for way in WAYS):
            said = f"{mount}: slow now and not before: measure again"
            found.append(of_node(host, Status.UNKNOWN, said, reasons.SLOW_ONCE))
        else:
            text = f"{mount} with {len(hosts)} nodes at once: {_figures(last, host)}"
            found.append(of_node(host, Status.PASS, text))
    return [*found, *_of_all(mount, tries, wanted_mb_s)]


def _figures(one: SharedSpeeds, host: str) -> str:
    return ", ".join(f"{way} {one.speeds[way][host]:g} MB/s" for way in WAYS)


def of_node(host: str, status: Status, text: str, reason: Reason | None = None, **rest: Any) -> dict[str, Any]:
    """A finding of one host."""
    remedy, said = (reason.remedy, reason.id) if reason else (Remedy.NONE, "")
    return Finding(STORAGE, status, text, remedy, device={HOST: host}, reason=said, **rest).to_dict()


def _of_all(mount: str, tries: Sequence[SharedSpeeds], wanted_mb_s: float) -> list[Any]:
    """The file system's own finding; its best try counts, for a busy moment only takes away."""
    found = []
    for way in WAYS:
        total = max(one.total(way) for one in tries)
        least = LEAST_OF_SUM * wanted_mb_s
        if wanted_mb_s and total < least:
            text = f"{mount}: {way} at {total:.0f} MB/s by all nodes at once, wanted {least:.0f} of its {wanted_mb_s:g}"
            rest: dict[str, Any] = {"measured": round(total, 1), "expected": round(least, 1), "unit": "MB/s"}
            found.append(
                Finding(STORAGE, Status.FAIL, text, Remedy.INVESTIGATE, reason=reasons.TOTAL_LOW.id, **rest).to_dict()
            )
    return found
