"""How the group of GPU nodes grows, shrinks and chooses spot capacity."""

import re
from dataclasses import replace
from decimal import Decimal

from zoneinfo import available_timezones

from infra.config.declare import declared
from infra.config.model import CapacitySettings, ScalingSettings, Scheduled, SpotSettings
from infra.config.values import Values
from infra.planning import efa
from infra.planning.instance_types import SPOT, NetworkFacts, facts

MOST_TYPES = 39
"""A mixed instances policy takes 40 types with the first one (EC2 Auto Scaling API, LaunchTemplate.Overrides)."""

_FIELD = r"(\*|\d{1,2}(-\d{1,2})?|[A-Z]{3}(-[A-Z]{3})?)(/\d{1,2})?"
_CRON = re.compile(rf"(?P<cron>({_FIELD}(,{_FIELD})*\s+){{4}}{_FIELD}(,{_FIELD})*)\s*=\s*(?P<count>\d{{1,4}})")
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
"""Minute, hour, day of month, month, day of week (crontab format, which scheduled actions take)."""

_NAMES = (
    *("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"),
    *("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"),
)


def together(values: Values, by_efa: bool, grouped: bool) -> str:
    """Why the nodes are in one zone, and what lets them be in several; empty where they need not be together.

    by_efa: EFA between nodes; grouped: they are launched into a placement group.
    """
    if by_efa:
        return "EFA traffic stays inside one availability zone; or efa: off"
    if grouped:
        return "a cluster placement group lies in one availability zone; or placementGroup: none"
    return "EFA to FSx stays inside one availability zone; or fsxEfa: false" if values.flag("fsxEfa") else ""


def spot(
    values: Values, known: NetworkFacts | None, bought: CapacitySettings, with_efa: bool, one_zone: str
) -> SpotSettings:
    """Spot capacity. with_efa: the launch template lists EFA interfaces. one_zone: see `together`."""
    if bought.kind != SPOT:
        for key in declared(SpotSettings).values():
            if values.changed(key.name) and SPOT not in [way.kind for way in bought.ways]:
                values.refuse(key.name, f"nothing with capacityType {bought.kind}, or spot there")
        return SpotSettings()
    given, named = SpotSettings(**values.section(SpotSettings)), len(values.items("availabilityZones"))
    if given.zones == 2 and one_zone:
        values.refuse("spotZones", f"1: {one_zone}")
    elif given.zones == 2 and named > 1:
        values.refuse("spotZones", "1: availabilityZones names them")
    elif named > 1 and not one_zone:
        given = replace(given, zones=named)
    price = given.max_price_usd_per_hour
    if price and not values.refused("spotMaxPriceUsd") and not Decimal(price):
        values.refuse("spotMaxPriceUsd", "more than 0, or nothing for the on-demand price as the limit")
    _types(values, known, with_efa, given.types)
    return given


def _types(values: Values, known: NetworkFacts | None, with_efa: bool, given: tuple[str, ...]) -> None:
    if len(given) > MOST_TYPES:
        values.refuse("spotInstanceTypes", f"at most {MOST_TYPES} types beside gpuInstanceType")
    for position, name in enumerate(given):
        if name in given[:position] or (known is not None and name == known.instance_type):
            values.refuse("spotInstanceTypes", "each type once, and gpuInstanceType not again", name)
            continue
        try:
            wanted = _unlike(facts(name), known, with_efa) if known else None
        except ValueError as error:
            wanted = str(error)
        if wanted:
            values.refuse("spotInstanceTypes", wanted, name)


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


def scaling(values: Values, known: NetworkFacts | None, maximum: int) -> ScalingSettings:
    """Protection, schedule, and what follows from idle GPUs."""
    zone = values.text("nodeScheduleTimeZone")
    zones = available_timezones() | {"UTC"}
    # A machine without the time zone database knows one name only; AWS then is who refuses another.
    if len(zones) > 1 and zone not in zones:
        values.refuse("nodeScheduleTimeZone", "a name of the IANA time zone database, such as Europe/Berlin or UTC")
    if values.flag("scaleInProtection") and values.items("nodeSchedule"):
        values.refuse("scaleInProtection", "false with nodeSchedule: protected nodes would stay when it shrinks")
    planned = (
        _scheduled(values, item, values.number("gpuNodeMinimum"), maximum) for item in values.items("nodeSchedule")
    )
    given = ScalingSettings(
        schedule=tuple(one for one in planned if one is not None), **values.section(ScalingSettings)
    )
    _idle(values, known, given.idle_hours)
    return given


def _idle(values: Values, known: NetworkFacts | None, hours: int) -> None:
    if hours and known is not None and known.accelerator != "nvidia_gpu":
        values.refuse("gpuIdleHours", f"0: {known.instance_type} has no NVIDIA GPU whose use is measured")
    if hours and not values.number("thresholdGpuUtilizationPercent"):
        values.refuse("gpuIdleHours", "0, or thresholdGpuUtilizationPercent above 0, which says what idle is")
    if values.flag("gpuIdleScaleIn") and not hours:
        values.refuse("gpuIdleScaleIn", "false, or gpuIdleHours of 1 and more")
    if values.flag("gpuIdleScaleIn") and values.flag("scaleInProtection"):
        values.refuse("gpuIdleScaleIn", "false with scaleInProtection: protected nodes would stay")


def _scheduled(values: Values, item: str, minimum: int, maximum: int) -> Scheduled | None:
    found = _CRON.fullmatch(item)
    if found is None or not all(map(_in_bounds, found["cron"].split(), _BOUNDS)):
        wanted = 'five cron fields, "=", nodes: "0 20 * * MON-FRI = 0" is none from 20:00 on working days'
        values.refuse("nodeSchedule", wanted, item)
        return None
    count = int(found["count"])
    if not minimum <= count <= maximum:
        values.refuse("nodeSchedule", f"gpuNodeMinimum ({minimum}) to gpuNodeMaximum ({maximum}) nodes", item)
    return Scheduled(" ".join(found["cron"].split()), count)


def _in_bounds(field: str, bounds: tuple[int, int]) -> bool:
    numbers = [int(text) for part in field.split(",") for text in re.findall(r"\d+", part.split("/")[0])]
    named = all(name in _NAMES for name in re.findall(r"[A-Z]+", field))
    steps = all(int(step) > 0 for step in re.findall(r"/(\d+)", field))
    return named and steps and all(bounds[0] <= number <= bounds[1] for number in numbers)
