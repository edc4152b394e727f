"""Which availability zones the subnets and the GPU nodes go to."""

from collections.abc import Callable
from dataclasses import dataclass

from infra.config.model import ZoneSettings


@dataclass(frozen=True)
class Zone:
    """One availability zone of the region."""

    name: str
    zone_id: str

    def __str__(self) -> str:
        return f"{self.name} ({self.zone_id})"


@dataclass(frozen=True)
class ZoneOffering:
    """The region's zones, and the ids of those that offer the instance type; offering None: not known."""

    zones: tuple[Zone, ...]
    offering: frozenset[str] | None


Lookup = Callable[[str], ZoneOffering]
"""Instance type -> Offer."""


def choose(wanted: str | None, instance_type: str, offer: ZoneOffering) -> ZoneSettings:
    """The GPU zone (the wanted name or id, else the first that offers the type) and another one.

    Raises ValueError with what was wanted.
    """
    zones = sorted(offer.zones, key=lambda zone: zone.name)
    offering = [zone for zone in zones if offer.offering is None or zone.zone_id in offer.offering]
    if len(zones) < 2:
        raise ValueError(f"a region with two availability zones; this account sees {_listed(zones)}")
    if not offering:
        raise ValueError(f"a region that offers {instance_type}; none of {_listed(zones)} does")
    first = _wanted(wanted, instance_type, zones, offering) if wanted else offering[0]
    # A zone that offers the type as well comes first: the nodes can move there without new subnets.
    second = next(zone for zone in (*offering, *zones) if zone != first)
    return ZoneSettings((first.name, second.name), (first.zone_id, second.zone_id))


def _wanted(wanted: str, instance_type: str, zones: list[Zone], offering: list[Zone]) -> Zone:
    found = next((zone for zone in zones if wanted in (zone.name, zone.zone_id)), None)
    if found is None:
        raise ValueError(f"a zone of the region: {_listed(zones)}")
    if found not in offering:
        raise ValueError(f"a zone that offers {instance_type}: {_listed(offering)}")
    return found


def _listed(zones: list[Zone]) -> str:
    return ", ".join(str(zone) for zone in zones) or "none"
