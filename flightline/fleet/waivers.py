"""Waivers of what only shows across nodes. A node cannot apply them; it hands them on in its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from flightline_node.judge.waivers import FLEET_CHECKS, Waiver, apply, parse
from flightline_node.model import Finding, Remedy, SettingsError, Status

from .result import FindingDict, NodeRow

_SETTLED = ("status", "message", "remedy", "reason", "waiver")


def date_of(started_at: str) -> date:
    """The day of a run, on which its waivers are judged, also when it is reported again later."""
    try:
        return date.fromisoformat(started_at[:10])
    except ValueError:  # a run that a damaged store describes: no waiver is older than the first day
        return date.max


@dataclass
class FleetWaivers:
    """The waivers of every host's record. today: the day of the run."""

    today: date
    by_host: dict[str, Sequence[Waiver]] = field(default_factory=dict)

    def add(self, host: str, given: Any) -> None:
        """Take a record's waivers; one that this version cannot read sets nothing aside."""
        try:
            self.by_host[host] = parse(given, FLEET_CHECKS)
        except SettingsError:
            return

    def settle(self, row: NodeRow, finding: FindingDict) -> list[FindingDict]:
        """The finding as it stands after the host's waivers: set aside, as it was, or with its expired waiver."""
        waivers = self.by_host.get(row.host)
        if not waivers:
            return [finding]
        words = finding["check"], Status(finding["status"]), finding["message"], Remedy(finding["remedy"])
        plain = Finding(*words, device=finding["device"], reason=str(finding.get("reason") or ""))
        names = [name for name in (row.host, row.instance_id) if name]
        return [_joined(finding, settled.to_dict()) for settled in apply([plain], waivers, names, self.today)]


def _joined(finding: FindingDict, settled: Mapping[str, Any]) -> FindingDict:
    return {**finding, **{key: settled[key] for key in _SETTLED if key in settled}}
