"""What would spoil a preflight at its end, found before its first node is asked: places, publishing, waivers, needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, timezone
from typing import Any

from flightline_node.judge.checks import CHECKS
from flightline_node.judge.waivers import FLEET_CHECKS, parse
from flightline_node.model import LEVELS, SettingsError
from flightline_node.settings import build

from ..fleet.waiver_list import VARIABLE
from ..store.sqlite import default_path
from . import places
from .validation import Checked


def mistakes(checked: Checked, need: Any = None) -> dict[str, list[str]]:
    """Text -> the hosts it concerns, none for the whole run. need: how many go nodes the run has to find."""
    found: dict[str, list[str]] = {}
    today = datetime.now(timezone.utc).date()
    for host, given in checked.asked.items():
        for text in (*expired(given[VARIABLE], today), *_none_left(given)):
            found.setdefault(text, []).append(host)
    of_the_run = (*places.mistakes(default_path()), *_publishing(checked.publish), *_needed(need, len(checked.hosts)))
    return {**found, **{text: [] for text in of_the_run}}


def expired(given: Any, today: date) -> Iterator[str]:
    """Waivers whose last day has passed, whether or not a finding would lean on them."""
    for item in given if isinstance(given, (list, tuple)) else ():
        try:
            (waiver,) = parse([item], (*CHECKS, *FLEET_CHECKS))
        except SettingsError:  # told with the other mistakes of its host
            continue
        if waiver.expiry < today:
            yield (
                f"{VARIABLE}{_place(item)}: saw the waiver of {waiver.check} in scope {waiver.scope}, "
                f"owner {waiver.owner}, expired on {waiver.expiry}; wanted one that holds; do: renew or delete it"
            )


def _place(value: Any) -> str:
    """Where Ansible read a value, " (FILE:LINE:COLUMN)"; "" where it does not tell: before ansible-core 2.19."""
    try:
        from ansible._internal._datatag._tags import Origin
    except ImportError:
        return ""
    origin = Origin.get_tag(value)
    return f" ({origin})" if origin else ""


def _none_left(given: Mapping[str, Any]) -> Iterable[str]:
    """Checks that are chosen, none of which this level runs."""
    if not (given["flightline_checks"] or given["flightline_skip"]):
        return
    level = str(given["flightline_level"] or LEVELS[0])
    try:
        settings = build(level=level, select=given["flightline_checks"], skip=given["flightline_skip"])
    except SettingsError:  # told with the other mistakes of its host
        return
    if not any(LEVELS.index(check.level) <= LEVELS.index(level) for check in settings.checks):
        yield (
            f"flightline_checks: saw that level {level} runs none of the chosen checks that flightline_skip leaves, "
            "wanted one at least; do: raise the level, or choose others"
        )


def _publishing(of_the_inventory: Mapping[str, Any]) -> Iterable[str]:
    """The inventory's own form was checked with its hosts."""
    from ..cloud import publish_ready
    from ..cloud import publish_settings as settings

    try:
        wanted = settings.publish(of_the_inventory or settings.from_environment())
    except SettingsError as error:
        text = str(error)
        return [text if text.startswith(settings.PUBLISH_ENV) else f"{settings.PUBLISH_ENV}: {text}"]
    return publish_ready.lacking(wanted) if wanted else ()


def _needed(need: Any, hosts: int) -> Iterable[str]:
    if need and int(need) > hosts:
        yield f"--need: saw {need}, wanted at most the run's {hosts} hosts; do: ask for fewer, or name more hosts"
