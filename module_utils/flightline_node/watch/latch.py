"""Findings that stay until their remedy is proven. Pure: the marker as a value, changed by what the checks say."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Optional, Set

from ..model import Finding, as_remedy, as_status, device_label
from ..names import check_id
from . import claim, report
from . import marker as marking
from .verdicts import Identity, identity, label


class Latch:
    """The trouble of a node. `marker` is None while there is none."""

    def __init__(self, node: str, instance_id: str, boot_id: str) -> None:
        self._who = {"node": node, "instance_id": instance_id}
        self.boot_id = boot_id
        self.marker: Optional[marking.Marker] = None
        self._known: Dict[Identity, int] = {}
        self._counts: Dict[Identity, Any] = {}
        self.version = 0
        """Moves with every change of the marker."""

    def load(self, marker: Optional[marking.Marker]) -> None:
        """Go on with a marker that is there: after a restart, or with none after a release."""
        self.marker, self._known, self._counts = marker, {}, {}
        self.version += 1
        for number, one in enumerate(marker.get("findings") or [] if marker else []):
            finding = _finding(one)
            if finding:
                self._known[identity(finding)] = number
                self._counts[identity(finding)] = finding.measured

    def take(self, findings: Iterable[Finding], run: str, now: str) -> List[Finding]:
        """Latch findings; returns those that are new. The same trouble again only moves its `last` and its count."""
        fresh: List[Finding] = []
        touched: Set[str] = set()
        for finding in findings:
            key = identity(finding)
            if key in self._known:
                if self._counts.get(key) != finding.measured:
                    touched |= self._again(key, finding, now, touched)
            elif len(self._known) < marking.MAX_FINDINGS:
                self._first(key, finding, run, now)
                fresh.append(finding)
        return fresh

    def _first(self, key: Identity, finding: Finding, run: str, now: str) -> None:
        if self.marker is None:
            self.marker = {
                "schema": marking.SCHEMA,
                **self._who,
                "since": now,
                "by": marking.BY,
                "run": run,
                "boot_id": self.boot_id,
                "findings": [],
                "latched": {},
                "scheduler": {"kind": "none", "state": "pending", "reason": "", "at": now},
            }
        self.version += 1
        self._known[key] = len(self.marker["findings"])
        self._counts[key] = finding.measured
        self.marker["findings"].append(finding.to_dict())
        entry = self.marker["latched"].setdefault(
            label(finding), {"first": now, "last": now, "count": 0, "remedy": str(finding.remedy)}
        )
        entry.update(last=now, count=entry["count"] + 1)

    def _again(self, key: Identity, finding: Finding, now: str, touched: Set[str]) -> Set[str]:
        assert self.marker is not None
        self._counts[key] = finding.measured
        self.version += 1
        number = self._known[key]
        first = _finding(self.marker["findings"][number]) or finding
        self.marker["findings"][number] = {**finding.to_dict(), "device": dict(first.device)}
        entry = self.marker["latched"].get(label(first))
        if entry is None or label(first) in touched:
            return set()
        entry.update(last=now, count=entry["count"] + 1)
        return {label(first)}


def _finding(one: Any) -> Optional[Finding]:
    """A finding as a marker keeps it; None for what is none."""
    if not isinstance(one, dict) or not isinstance(one.get("device"), dict):
        return None
    return Finding(
        check_id(str(one.get("check"))),
        as_status(one.get("status")),
        str(one.get("message")),
        as_remedy(one.get("remedy")),
        dict(one["device"]),
        one.get("measured"),
        one.get("expected"),
        str(one.get("unit") or ""),
        tuple(map(str, one.get("evidence") or ())),
        str(one.get("reason") or ""),
    )


def drain_reason(marker: marking.Marker, about: Any = None) -> str:
    """What stands beside the node in the scheduler: the claim of its first finding, or of another."""
    first = _finding(about or next(iter(marker["findings"]), None))
    if first is None:
        return claim.Claim("quarantine", "node", claim.WATCH, report.LEVEL, "quarantined", str(marker["run"])).text
    part = device_label(first.device) or "node"
    return claim.of_finding(first.to_record(), part, claim.WATCH, report.LEVEL, str(marker["run"])).text
