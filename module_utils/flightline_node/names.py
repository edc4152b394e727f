"""Earlier names: what a renamed check, threshold or reason is called today, a function per lookup (docs/stability.md).

A name that nobody ever had comes back as it was given: whether it is known is for the caller to say. The tables follow
from `aliases` beside each declaration, as text, for the functions in AWS have no check with them.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Iterable, Iterator, Mapping

SITE = "site."
_OF_SITE = re.compile(r"site\.[a-z][a-z0-9_]{0,47}")

# begin: made by python -m tools.registries
CHECKS: Dict[str, str] = {}
THRESHOLDS: Dict[str, str] = {}
REASONS: Dict[str, str] = {}
# end: made by python -m tools.registries


def check_id(name: str) -> str:
    """A check's id of today."""
    return CHECKS.get(name, name)


def is_site(check: str) -> bool:
    """Is it the id of a check of the site's own (judge/site_checks.py)?"""
    return bool(_OF_SITE.fullmatch(check))


def threshold(name: str) -> str:
    """A threshold's full name of today, <check>.<name>."""
    check, dot, own = name.partition(".")
    today = f"{check_id(check)}{dot}{own}"
    return THRESHOLDS.get(today, today)


def reason(check: str, given: str) -> str:
    """A reason's id of today: its own check's, or a common one's. Of a family, xid.79, the part stays."""
    family, dot, part = given.partition(".")
    for whose in (check, ""):
        today = REASONS.get(f"{whose}.{family}")
        if today:
            return f"{today.partition('.')[2]}{dot}{part}"
    return given


def record(found: Dict[str, Any]) -> Dict[str, Any]:
    """A record with the checks and reasons of its findings and handed-on waivers, as they are called today."""
    if not (CHECKS or REASONS):
        return found
    lists = {key: found[key] for key in ("findings", "fleet_waivers") if found.get(key)}
    return {**found, **{key: [_today(one) for one in items] for key, items in lists.items()}}


def _today(one: Mapping[str, Any]) -> Mapping[str, Any]:
    if not REASONS or not one.get("reason"):
        return {**one, "check": check_id(one["check"])} if one["check"] in CHECKS else one
    check = check_id(one["check"])
    return {**one, "check": check, "reason": reason(check, str(one["reason"]))}


def split_names(given: Any) -> Iterator[str]:
    """Names in a list, or in text with commas. Ansible splits "a, b" at the comma and keeps the space."""
    listed = [given] if isinstance(given, str) else [str(name) for name in given or ()]
    return (part.strip() for text in listed for part in text.split(",") if part.strip())


def warnings(given: Mapping[str, Any]) -> Iterator[str]:
    """What to say of settings that use an earlier name. given: checks, skip, thresholds and waivers, of any shape."""
    for what in ("checks", "skip"):
        yield from _said(what, split_names(given.get(what)), check_id)
    thresholds, waivers = given.get("thresholds"), given.get("waivers")
    yield from _said("thresholds", map(str, thresholds if isinstance(thresholds, Mapping) else ()), threshold)
    listed = waivers if isinstance(waivers, (list, tuple)) else ()
    yield from _said("waivers", (str(one.get("check")) for one in listed if isinstance(one, Mapping)), check_id)


def _said(what: str, given: Iterable[str], lookup: Callable[[str], str]) -> Iterator[str]:
    for name in dict.fromkeys(given):
        if lookup(name) != name:
            yield f"{what}: {earlier(name, lookup(name))}"


def earlier(name: str, today: str) -> str:
    """The sentence about an earlier name that was given."""
    return f"saw {name}, wanted {today}, its new name; do: write that, the next minor version takes no other"
