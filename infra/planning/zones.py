"""Which availability zones the subnets and the GPU nodes go to."""

from collections.abc import Callable, Sequence
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


def choose(
    wanted: Sequence[str], instance_type: str, offer: ZoneOffering, several: bool = False, bought_in: str | None = None
) -> ZoneSettings:
    """The zones of the subnets, the wanted names or ids in their order, and those of them that hold GPU nodes.

    Without a wish the first that offers the type; a second one is always there. several: nodes are in each that offers
    the type, not in the first of them alone. bought_in: where they were bought. Raises ValueError with what was wanted.
    """
    known = sorted(offer.zones, key=lambda zone: zone.name)
    offering = [zone for zone in known if offer.offering is None or zone.zone_id in offer.offering]
    if len(known) < 2:
        raise ValueError(f"a region with two availability zones; this account sees {_listed(known)}")
    if not offering:
        raise ValueError(f"a region that offers {instance_type}; none of {_listed(known)} does")
    zones = [_named(one, known) for one in wanted] or offering[:1]
    if len(set(zones)) < len(zones):
        raise ValueError("each zone once, by its name or its id")
    alone = len(zones) < 2
    if alone:
        # A zone that offers the type as well comes first: the nodes can move there without new subnets.
        zones.append(next(zone for zone in (*offering, *known) if zone not in zones))
    holding = [
        zone
        for zone in (zones[:1] if alone and not several else zones)
        if zone in offering and bought_in in (None, zone.name, zone.zone_id)
    ]
    if not holding or (alone and zones[0] not in holding):
        raise ValueError(f"a zone that offers {instance_type}: {_listed(offering)}")
    nodes = tuple(zones.index(zone) for zone in (holding if several else holding[:1]))
    return ZoneSettings(tuple(zone.name for zone in zones), tuple(zone.zone_id for zone in zones), nodes)


def _named(wanted: str, known: list[Zone]) -> Zone:
    found = next((zone for zone in known if wanted in (zone.name, zone.zone_id)), None)
    if found is None:
        raise ValueError(f"a zone of the region: {_listed(known)}")
    return found


def _listed(zones: list[Zone]) -> str:
    return ", ".join(str(zone) for zone in zones) or "none"
