"""Findings that the site has set aside: variable compliance_waivers, entries with check, scope, reason, owner, expiry."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatch
from typing import Any

FIELDS = ("check", "scope", "reason", "owner", "expiry")


@dataclass(frozen=True)
class Waiver:
    """One waiver. check: a test's name, with or without its parameter; scope: a pattern of host names."""

    check: str
    scope: str
    reason: str
    owner: str
    expiry: date

    def covers(self, test: str, host: str) -> bool:
        return self.check in (test, test.partition("[")[0]) and fnmatch(host, self.scope)

    def text(self) -> str:
        return f"waived until {self.expiry} by {self.owner}: {self.reason}"


def parse(entries: Iterable[Mapping[str, Any]]) -> list[Waiver]:
    """Read the entries. Raises ValueError for one that lacks a field: a waiver without an owner or an end is none."""
    return [_one(position, entry) for position, entry in enumerate(entries, 1)]


def _one(position: int, entry: Mapping[str, Any]) -> Waiver:
    missing = [name for name in FIELDS if not str(entry.get(name) or "").strip()]
    if missing:
        raise ValueError(
            f"seen: compliance waiver {position} without {', '.join(missing)}; wanted: {', '.join(FIELDS)}; do: complete it"
        )
    values = {name: str(entry[name]) for name in FIELDS}
    return Waiver(expiry=date.fromisoformat(values.pop("expiry")[:10]), **values)


def verdict(waivers: Iterable[Waiver], test: str, host: str, today: date) -> tuple[str, str]:
    """('run', ''), ('skip', why) or ('fail', why): an expired waiver fails rather than hiding or vanishing."""
    mine = [waiver for waiver in waivers if waiver.covers(test, host)]
    if not mine:
        return "run", ""
    valid = [waiver for waiver in mine if waiver.expiry >= today]
    return (
        ("skip", valid[0].text()) if valid else ("fail", f"expired: {mine[0].text()}; do: fix it, or renew the waiver")
    )
