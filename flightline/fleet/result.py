"""The result of a run, as every renderer sees it: plain data, no I/O.

Rows are compact (a status per check, and only the findings that say more than PASS),
because a fleet of ten thousand nodes has half a million findings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from flightline_node.model import Remedy, Status, Verdict

from .causes import Trouble, troubles

FindingDict = dict[str, Any]
"""A finding as flightline_node.model.Finding.to_dict() makes it."""


@dataclass(frozen=True)
class RunInfo:
    """Which run this is. Stamps are ISO 8601 in UTC; finished_at is empty while it runs."""

    id: str
    started_at: str
    finished_at: str = ""
    level: str = "quick"
    inventory: str = ""
    flightline: str = ""


@dataclass
class NodeRow:
    """One inventory host. cells: check id -> worst status of its findings on this node.

    findings: those that are not PASS, in the order of the checks. Unreachable and lost hosts have a row
    with one finding (check "reachable"). place: rack or zone, "" where the inventory gives none;
    address: by which other nodes reach it, "" for its name.
    """

    host: str
    verdict: Verdict
    status: Status
    instance_id: str = ""
    instance_type: str = ""
    seconds: float = 0.0
    cells: dict[str, Status] = field(default_factory=dict)
    findings: list[FindingDict] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    place: str = ""
    address: str = ""

    @cached_property
    def troubles(self) -> list[Trouble]:
        """The root causes of what blocks the node, most urgent first. Read when the row's findings are complete."""
        return troubles(self.findings)


@dataclass(frozen=True)
class TroubleGroup:
    """The same trouble on one or more hosts.

    where: (host, device label, measured) of each occurrence, worst message first. explains: checks whose findings on
    these hosts follow from it. explained_by: the cause that it follows from itself, "" for a root.
    """

    check: str
    title: str
    status: Status
    remedy: Remedy
    remedy_text: str
    message: str
    expected: Any
    unit: str
    where: list[tuple[str, str, Any]]
    explains: dict[str, None] = field(default_factory=dict)
    explained_by: str = ""

    @property
    def hosts(self) -> list[str]:
        """Hosts concerned, each once, in inventory order."""
        return list(dict.fromkeys(host for host, _, _ in self.where))


@dataclass(frozen=True)
class Outlier:
    """A value far from its fleet. score: distance from the median in robust standard deviations."""

    host: str
    device: str
    value: float
    score: float


@dataclass(frozen=True)
class Distribution:
    """A numeric measure over the fleet; quantiles are minimum, 5%, 25%, median, 75%, 95%, maximum.

    bins: counts of equal-width bins from the minimum to the maximum.
    """

    name: str
    unit: str
    count: int
    quantiles: tuple[float, ...]
    bins: list[int]
    outliers: list[Outlier]


@dataclass
class Report:
    """Everything a run came to. fleet: findings about the fleet as a whole, each with "hosts".

    incidents: those of its store, as flightline.healing keeps them, newest first. late: hosts that answered after they
    had been given up, judged here by what they said. first: the verdict that the run was closed with, "" while it is
    open. proofs: how old each node's proof was at the run's end, where its store tells (fleet/proofs.py).
    """

    run: RunInfo
    verdict: Verdict
    checks: list[str]
    rows: list[NodeRow]
    fleet: list[FindingDict]
    groups: list[TroubleGroup]
    distributions: list[Distribution]
    incidents: list[dict[str, Any]] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    first: str = ""
    proofs: dict[str, dict[str, float | None]] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """nodes, go, no_go, unreachable (unreachable ones are no_go too)."""
        return {
            "nodes": len(self.rows),
            "go": sum(row.verdict is Verdict.GO for row in self.rows),
            "no_go": sum(row.verdict is Verdict.NO_GO for row in self.rows),
            "unreachable": sum(row.status is Status.UNREACHABLE for row in self.rows),
        }
