"""How the group of GPU nodes grows, shrinks and chooses spot capacity."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from zoneinfo import available_timezones

from infra.config.draft import Draft
from infra.config.model import Scaling, Scheduled, Spot
from infra.planning import efa
from infra.planning.instance_types import SPOT, NetworkFacts, facts

ALLOCATIONS = ("price-capacity-optimized", "capacity-optimized")
"""Without lowest-price, which AWS advises against: it is interrupted most (EC2 Auto Scaling guide, "Allocation
strategies", 2026)."""

MOST_TYPES = 39
"""A mixed instances policy takes 40 types with the first one (EC2 Auto Scaling API, LaunchTemplate.Overrides)."""

MOST_IDLE_HOURS = 24
"""An alarm with periods under an hour looks at one day at most (CloudWatch API, PutMetricAlarm, 2026)."""

PRICE = r"\d{1,4}(\.\d{1,4})?"
_SPOT_KEYS = ("spotInstanceTypes", "spotZones", "spotAllocation", "spotMaxPriceUsd", "spotRebalance")
_FIELD = r"(\*|\d{1,2}(-\d{1,2})?|[A-Z]{3}(-[A-Z]{3})?)(/\d{1,2})?"
_CRON = re.compile(rf"(?P<cron>({_FIELD}(,{_FIELD})*\s+){{4}}{_FIELD}(,{_FIELD})*)\s*=\s*(?P<count>\d{{1,4}})")
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
"""Minute, hour, day of month, month, day of week (crontab format, which scheduled actions take)."""

_NAMES = (
    *("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"),
    *("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"),
)


@dataclass(frozen=True)
class Together:
    """What keeps nodes in one zone. by_efa: EFA between nodes; grouped: they are launched into a placement group."""

    by_efa: bool
    grouped: bool


def spot(draft: Draft, known: NetworkFacts | None, kind: str, with_efa: bool, together: Together) -> Spot:
    """Spot capacity. with_efa: the launch template lists EFA interfaces."""
    if kind != SPOT:
        for key in _SPOT_KEYS:
            if draft.changed(key):
                draft.refuse(key, f"nothing with capacityType {kind}, or spot there")
        return Spot()
    zones = draft.within("spotZones", 1, 2, "availability zones")
    if zones == 2:
        _one_zone(draft, together)
    price = draft.matching("spotMaxPriceUsd", f"({PRICE})?", "US dollars for an instance and hour, such as 12.5")
    if price and not draft.refused("spotMaxPriceUsd") and not Decimal(price):
        draft.refuse("spotMaxPriceUsd", "more than 0, or nothing for the on-demand price as the limit")
    return Spot(
        types=_types(draft, known, with_efa),
        zones=zones,
        allocation=draft.one_of("spotAllocation", ALLOCATIONS),
        max_price_usd_per_hour=price or None,
        rebalance=draft.flag("spotRebalance"),
    )


def _one_zone(draft: Draft, together: Together) -> None:
    """Refuse two zones where the nodes have to be together."""
    if together.by_efa:
        draft.refuse("spotZones", "1: EFA traffic stays inside one availability zone; or efa: off")
    elif together.grouped:
        draft.refuse("spotZones", "1: a cluster placement group lies in one availability zone; or placementGroup: none")
    elif draft.flag("fsxEfa"):
        draft.refuse("spotZones", "1: EFA to FSx stays inside one availability zone; or fsxEfa: false")


def _types(draft: Draft, known: NetworkFacts | None, with_efa: bool) -> tuple[str, ...]:
    given = draft.items("spotInstanceTypes")
    if len(given) > MOST_TYPES:
        draft.refuse("spotInstanceTypes", f"at most {MOST_TYPES} types beside gpuInstanceType")
    for position, name in enumerate(given):
        if name in given[:position] or (known is not None and name == known.instance_type):
            draft.refuse("spotInstanceTypes", "each type once, and gpuInstanceType not again", name)
            continue
        try:
            wanted = _unlike(facts(name), known, with_efa) if known else None
        except ValueError as error:
            wanted = str(error)
        if wanted:
            draft.refuse("spotInstanceTypes", wanted, name)
    return given


def _unlike(other: NetworkFacts, first: NetworkFacts, with_efa: bool) -> str | None:
    """Why one launch template cannot serve both types, None when it can."""
    if SPOT not in other.capacities:
        return "types that are sold as spot"
    if (other.accelerator, other.architecture) != (first.accelerator, first.architecture):
        return f"types with {first.accelerator} and {first.architecture}, as {first.instance_type}: they share an image"
    if other.gpu_count != first.gpu_count:
        return f"types with {first.gpu_count} GPUs, as {first.instance_type}: ranks for each node are one number"
    if with_efa and efa.interfaces(other.instance_type, True) != efa.interfaces(first.instance_type, True):
        return f"types with the EFA interfaces of {first.instance_type}, which the launch template lists; or efa: off"
    return None


def scaling(draft: Draft, known: NetworkFacts | None, minimum: int, maximum: int) -> Scaling:
    """Protection and schedule."""
    zone = draft.text("nodeScheduleTimeZone")
    zones = available_timezones() | {"UTC"}
    # A machine without the time zone database knows one name only; AWS then is who refuses another.
    if len(zones) > 1 and zone not in zones:
        draft.refuse("nodeScheduleTimeZone", "a name of the IANA time zone database, such as Europe/Berlin or UTC")
    if draft.flag("scaleInProtection") and draft.items("nodeSchedule"):
        draft.refuse("scaleInProtection", "false with nodeSchedule: protected nodes would stay when it shrinks")
    planned = (_scheduled(draft, item, minimum, maximum) for item in draft.items("nodeSchedule"))
    return Scaling(
        protect=draft.flag("scaleInProtection"),
        schedule=tuple(one for one in planned if one is not None),
        time_zone=zone,
        idle_hours=_idle_hours(draft, known),
        idle_scale_in=draft.flag("gpuIdleScaleIn"),
    )


def _idle_hours(draft: Draft, known: NetworkFacts | None) -> int:
    hours = draft.within("gpuIdleHours", 0, MOST_IDLE_HOURS, "hours; 0 is no alarm")
    if hours and known is not None and known.accelerator != "nvidia_gpu":
        draft.refuse("gpuIdleHours", f"0: {known.instance_type} has no NVIDIA GPU whose use is measured")
    if hours and not draft.number("thresholdGpuUtilizationPercent"):
        draft.refuse("gpuIdleHours", "0, or thresholdGpuUtilizationPercent above 0, which says what idle is")
    if draft.flag("gpuIdleScaleIn") and not hours:
        draft.refuse("gpuIdleScaleIn", "false, or gpuIdleHours of 1 and more")
    if draft.flag("gpuIdleScaleIn") and draft.flag("scaleInProtection"):
        draft.refuse("gpuIdleScaleIn", "false with scaleInProtection: protected nodes would stay")
    return hours


def _scheduled(draft: Draft, item: str, minimum: int, maximum: int) -> Scheduled | None:
    found = _CRON.fullmatch(item)
    if found is None or not all(map(_in_bounds, found["cron"].split(), _BOUNDS)):
        wanted = 'five cron fields, "=", nodes: "0 20 * * MON-FRI = 0" is none from 20:00 on working days'
        draft.refuse("nodeSchedule", wanted, item)
        return None
    count = int(found["count"])
    if not minimum <= count <= maximum:
        draft.refuse("nodeSchedule", f"gpuNodeMinimum ({minimum}) to gpuNodeMaximum ({maximum}) nodes", item)
    return Scheduled(" ".join(found["cron"].split()), count)


def _in_bounds(field: str, bounds: tuple[int, int]) -> bool:
    numbers = [int(text) for part in field.split(",") for text in re.findall(r"\d+", part.split("/")[0])]
    named = all(name in _NAMES for name in re.findall(r"[A-Z]+", field))
    steps = all(int(step) > 0 for step in re.findall(r"/(\d+)", field))
    return named and steps and all(bounds[0] <= number <= bounds[1] for number in numbers)
