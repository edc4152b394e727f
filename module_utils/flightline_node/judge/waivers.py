"""Waivers: a finding set aside with a reason, an owner and an end."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Dict, Iterable, List, Mapping, Sequence

from ..model import Finding, Remedy, SettingsError, Status
from ..names import check_id, is_site
from ..suggest import unknown
from .reasons import WAIVER_EXPIRED
from .skips import WAIVED

FIELDS = ("check", "scope", "reason", "owner", "expiry")
FLEET_CHECKS = (
    *(f"uniform_{what}" for what in ("driver", "cuda", "nccl", "efa_installer", "efa_driver", "kernel", "vbios")),
    "growth_ecc",
    "growth_efa",
)
"""Checks across nodes or runs that may be waived: the fleet's judgement applies these waivers, a node hands them on."""

WAIVABLE = frozenset({Status.INFO, Status.WARN, Status.FAIL, Status.UNKNOWN})


@dataclass(frozen=True)
class Waiver:
    """One waiver.

    scope: a shell pattern for a host name, an instance id, or a device's UUID, serial, PCI address or
    name; '*' is everywhere. expiry: the last day it holds.
    """

    check: str
    scope: str
    reason: str
    owner: str
    expiry: date

    def to_dict(self) -> Dict[str, str]:
        """Plain data; parse reads it."""
        return {name: str(getattr(self, name)) for name in FIELDS}

    def covers(self, finding: Finding, names: Iterable[str]) -> bool:
        """Does it set this finding aside on the node known by these names?"""
        if finding.check != self.check or finding.status not in WAIVABLE:
            return False
        candidates = [*names, *(str(v) for k, v in finding.device.items() if k != "index")]
        return any(fnmatch.fnmatchcase(name.lower(), self.scope.lower()) for name in candidates if name)


def for_fleet(waivers: Iterable[Waiver]) -> List[Mapping[str, str]]:
    """Those that only the fleet's judgement can apply, as plain data."""
    return [waiver.to_dict() for waiver in waivers if waiver.check in FLEET_CHECKS]


def parse(items: Any, known_checks: Iterable[str]) -> List[Waiver]:
    """Read waivers from the inventory. Raises SettingsError naming each wrong entry and what was wanted."""
    if not items:
        return []
    if not isinstance(items, (list, tuple)):
        raise SettingsError(f"waivers: saw {items!r}, wanted a list of mappings with {', '.join(FIELDS)}")
    known = sorted(known_checks)
    waivers: List[Waiver] = []
    mistakes: List[str] = []
    for position, item in enumerate(items, 1):
        try:
            waivers.append(_one(position, item, known))
        except SettingsError as error:
            mistakes += error.mistakes
    if mistakes:
        raise SettingsError(*mistakes)
    return waivers


def _one(position: int, item: Any, known: Sequence[str]) -> Waiver:
    where = f"waiver {position}"
    if not isinstance(item, Mapping):
        raise SettingsError(f"{where}: saw {item!r}, wanted a mapping with {', '.join(FIELDS)}")
    missing = [name for name in FIELDS if not str(item.get(name) or "").strip()]
    strange = sorted(set(map(str, item)) - set(FIELDS))
    if missing or strange:
        problem = f"that it lacks {', '.join(missing)}" if missing else f"unknown key {', '.join(strange)}"
        raise SettingsError(f"{where}: saw {problem}; wanted {', '.join(FIELDS)}")
    check = check_id(str(item["check"]))
    if check not in known and not is_site(check):
        raise SettingsError(f"{where}: {unknown('check', item['check'], known)}")
    try:
        # YAML turns 2026-12-31 into a date by itself; JSON leaves it text. Both end here.
        expiry = datetime.fromisoformat(str(item["expiry"])).date()
    except ValueError:
        raise SettingsError(f"{where}: saw expiry {item['expiry']!r}, wanted a date like 2026-12-31") from None
    return Waiver(check, str(item["scope"]), str(item["reason"]), str(item["owner"]), expiry)


def apply(findings: Iterable[Finding], waivers: Sequence[Waiver], names: Sequence[str], today: date) -> List[Finding]:
    """Findings with waived ones turned to SKIP, and a FAIL for each expired waiver still leaned on."""
    result: List[Finding] = []
    for finding in findings:
        waiver = next((w for w in waivers if w.covers(finding, names)), None)
        if waiver is None:
            result.append(finding)
        elif waiver.expiry >= today:
            result.append(_waived(finding, waiver))
        else:
            result += [finding, _expired(finding, waiver)]
    return result


def is_waived(finding: Mapping[str, Any]) -> bool:
    """Tell a waived finding, as it is stored, from one that was skipped for another reason."""
    return finding.get("status") == Status.SKIP and finding.get("reason") == WAIVED.id


def _waived(finding: Finding, waiver: Waiver) -> Finding:
    text = f"waived until {waiver.expiry} by {waiver.owner}: {waiver.reason} (was {finding.status}: {finding.message})"
    return replace(
        finding, status=Status.SKIP, message=text, remedy=Remedy.NONE, reason=WAIVED.id, waiver=waiver.to_dict()
    )


def _expired(finding: Finding, waiver: Waiver) -> Finding:
    message = f"waiver of {waiver.owner} expired on {waiver.expiry}: {waiver.reason}; renew it or act on the finding"
    words = WAIVER_EXPIRED.remedy, dict(finding.device)
    return Finding(finding.check, Status.FAIL, message, *words, reason=WAIVER_EXPIRED.id, waiver=waiver.to_dict())
