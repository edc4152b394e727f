"""What a site may set for a run, checked before anything is probed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from . import names
from .judge import site_checks
from .judge.checks import CHECKS
from .judge.waivers import FLEET_CHECKS, Waiver
from .judge.waivers import parse as parse_waivers
from .know.expected import Expected, resolve
from .model import LEVELS, Check, SettingsError, Threshold
from .suggest import meant, unknown


@dataclass(frozen=True)
class NodeSettings:
    """Validated settings of a run.

    checks: those selected, in catalogue order, the site's own last. skipped: those the user set aside by id or tag.
    selects: only some checks were asked for, so that a node's own directory adds none.
    """

    level: str = "quick"
    checks: Tuple[Check, ...] = ()
    skipped: Tuple[Check, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    waivers: Tuple[Waiver, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    selects: bool = False


def known_thresholds() -> Dict[str, Threshold]:
    """Every threshold by its full name, `<check>.<name>`."""
    return {f"{check.id}.{t.name}": t for check in CHECKS.values() for t in check.thresholds}


def build(
    *,
    level: str = "quick",
    select: Optional[Sequence[str]] = None,
    skip: Optional[Sequence[str]] = None,
    thresholds: Optional[Mapping[str, Any]] = None,
    waivers: Any = None,
    options: Optional[Mapping[str, Any]] = None,
    site: Any = None,
) -> NodeSettings:
    """Check everything the user gave. Raises SettingsError with every mistake at once."""
    errors: List[str] = []
    if level not in LEVELS:
        errors.append(f"unknown level {level!r}{meant(level, LEVELS)}; known levels: {', '.join(LEVELS)}")
    own: List[Check] = []
    try:
        own += site_checks.declared(site, [*names.split_names(select), *names.split_names(skip)])
    except SettingsError as error:
        errors += error.mistakes
    known = {**CHECKS, **{check.id: check for check in own}}
    selected = _pick(select, "checks", errors, known)
    left_out = _pick(skip, "skip", errors, known)
    numbers = _numbers(thresholds, errors)
    accepted: List[Waiver] = []
    try:
        accepted = parse_waivers(waivers, (*CHECKS, *FLEET_CHECKS))
    except SettingsError as error:
        errors += error.mistakes
    if errors:
        raise SettingsError(*errors)
    chosen = [check for check in known.values() if not select or check.id in selected]
    return NodeSettings(
        level,
        tuple(check for check in chosen if check.id not in left_out),
        tuple(check for check in chosen if check.id in left_out),
        numbers,
        tuple(accepted),
        dict(options or {}),
        bool(select),
    )


def resolve_settings(given: Mapping[str, Any]) -> Tuple[Expected, NodeSettings]:
    """Expected values and settings of a run's inputs, by name. Raises SettingsError with every mistake at once."""
    mistakes: List[str] = []
    expected = settings = None
    try:
        expected = resolve(given["instance_type"], given["expected"])
    except SettingsError as error:
        mistakes += error.mistakes
    try:
        settings = build(
            level=given["level"],
            select=given["checks"],
            skip=given["skip"],
            thresholds=given["thresholds"],
            waivers=given["waivers"],
            options=given["options"],
            site=given.get("site_checks"),
        )
    except SettingsError as error:
        mistakes += error.mistakes
    if expected is None or settings is None:
        raise SettingsError(*mistakes)
    return expected, settings


def _pick(given: Optional[Iterable[str]], what: str, errors: List[str], known: Mapping[str, Check]) -> List[str]:
    tags = sorted({tag for check in known.values() for tag in check.tags})
    picked: List[str] = []
    for name in map(names.check_id, names.split_names(given)):
        if name in known:
            picked.append(name)
        elif name in tags:
            picked += [check.id for check in known.values() if name in check.tags]
        else:
            errors.append(f"{what}: {unknown('check or tag', name, [*known, *tags])}")
    return picked


def _numbers(thresholds: Any, errors: List[str]) -> Dict[str, float]:
    if not thresholds:
        return {}
    if not isinstance(thresholds, Mapping):
        errors.append(f"thresholds: saw {thresholds!r}, wanted a mapping of <check>.<name> to a number")
        return {}
    known, numbers = known_thresholds(), {}  # type: Dict[str, Threshold], Dict[str, float]
    for written, given in thresholds.items():
        name = names.threshold(str(written))
        threshold = known.get(name)
        if threshold is None:
            errors.append(unknown("threshold", written, known))
            continue
        if name in numbers:
            errors.append(f"threshold {name}: saw it twice, as {written} too; wanted it once; do: keep {name}")
            continue
        try:
            amount = float(given) if not isinstance(given, bool) else float("nan")
        except (TypeError, ValueError):
            amount = float("nan")
        if threshold.minimum <= amount <= threshold.maximum:
            numbers[name] = amount
        else:
            wanted = f"a number from {threshold.minimum:g} to {threshold.maximum:g} {threshold.unit}".rstrip()
            errors.append(f"threshold {name}: saw {given!r}, wanted {wanted}")
    return numbers
