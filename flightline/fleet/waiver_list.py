"""The waivers of an inventory or a run: what is set aside, for how long still, and what is no longer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from flightline_node.judge.checks import CHECKS
from flightline_node.judge.waivers import FIELDS, FLEET_CHECKS, Waiver, is_waived, parse
from flightline_node.model import SettingsError

from .result import Report

VARIABLE = "flightline_waivers"


@dataclass
class ListedWaiver:
    """One waiver with the hosts that have it."""

    waiver: Waiver
    hosts: list[str] = field(default_factory=list)

    def days_left(self, today: date) -> int:
        """Whole days until its last one; negative when it has expired."""
        return (self.waiver.expiry - today).days

    def state(self, today: date, soon_days: int) -> str:
        """active, soon or expired."""
        left = self.days_left(today)
        return "expired" if left < 0 else "soon" if left <= soon_days else "active"


def from_variables(hosts: Mapping[str, Any]) -> tuple[list[ListedWaiver], list[str]]:
    """The waivers of hosts, each once, and what cannot be read, with its host."""
    found: dict[Waiver, ListedWaiver] = {}
    mistakes: dict[str, list[str]] = {}
    for host, given in hosts.items():
        for item in given if isinstance(given, list) else [given] if given else []:
            try:
                (waiver,) = parse([item], (*CHECKS, *FLEET_CHECKS))
            except SettingsError as error:
                mistakes.setdefault(str(error), []).append(host)
            else:
                found.setdefault(waiver, ListedWaiver(waiver)).hosts.append(host)
    broken = [f"{', '.join(some[:3])}{' and more' if some[3:] else ''}: {text}" for text, some in mistakes.items()]
    return sorted(found.values(), key=lambda one: one.waiver.expiry), broken


def from_report(report: Report) -> tuple[list[ListedWaiver], list[str]]:
    """The waivers that a run leaned on, with the hosts where they set a finding aside, or no longer did.

    A run of an earlier version kept no waiver beside a finding: it is among what cannot be read.
    """
    return from_variables(
        {
            row.host: [one.get("waiver") or {"check": one["check"]} for one in row.findings if _leans(one)]
            for row in report.rows
        }
    )


def _leans(finding: Mapping[str, Any]) -> bool:
    return bool(finding.get("waiver")) or is_waived(finding)


def as_dict(one: ListedWaiver, today: date, soon_days: int) -> dict[str, object]:
    """For scripts."""
    words = {name: str(getattr(one.waiver, name)) for name in FIELDS}
    return {**words, "state": one.state(today, soon_days), "days_left": one.days_left(today), "hosts": one.hosts}
