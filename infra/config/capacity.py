"""How instances are bought: one way, or several in the order in which they are tried."""

import re

from infra.config.model import EKS, ZONE, CapacitySettings, Way
from infra.config.values import Values
from infra.planning.instance_types import CAPACITIES, CAPACITY_BLOCK, ON_DEMAND, RESERVATION, NetworkFacts

MOST_NODES_PER_BLOCK = 64
"""EC2 capacity blocks: at most 64 instances each (EC2 user guide, 2026)."""

RESERVATION_ID = r"cr-[0-9a-f]{17}"
_WAY = re.compile(rf"(?P<kind>reservation|capacity-block) +(?P<id>{RESERVATION_ID}) +(?P<zone>{ZONE})|on-demand|spot")


def read(values: Values, known: NetworkFacts | None, maximum: int) -> CapacitySettings:
    """The settings of the way in use."""
    listed = ways(values)
    if not values.items("capacityOrder"):
        if values.text("capacityChosen"):
            values.refuse(
                "capacityChosen", "nothing without capacityOrder: `pulumi config rm flightline:capacityChosen`"
            )
        return _single(values, known, maximum)
    if values.text("orchestrator") == EKS:
        why = "another way to buy replaces the node group, with every node in it"
        values.refuse("capacityOrder", f"nothing with orchestrator eks: {why}; capacityType there")
    for name in ("capacityType", "capacityReservationId"):
        if values.changed(name):
            values.refuse(name, "its default with capacityOrder: capacityOrder says it")
    for way in listed:
        _sold(values, "capacityOrder", way.kind, known)
        _block_holds(values, way.kind, maximum)
    used = in_use(listed, values.text("capacityChosen"))
    after = listed[listed.index(used) + 1 :][:1] if listed else ()
    return CapacitySettings(
        kind=used.kind,
        reservation_id=used.reservation_id,
        zone=used.zone,
        ways=listed,
        chosen=str(used),
        then_on_demand=used.kind == RESERVATION and [way.kind for way in after] == [ON_DEMAND],
    )


def in_use(listed: tuple[Way, ...], chosen: str) -> Way:
    """The chosen way of an order; the first where none was chosen yet, or the order no longer has it."""
    return next((way for way in listed if str(way) == chosen), listed[0] if listed else Way(ON_DEMAND))


def ways(values: Values) -> tuple[Way, ...]:
    """The ways of capacityOrder; what is none of them is refused."""
    found: list[Way] = []
    for item in values.items("capacityOrder"):
        match = _WAY.fullmatch(item)
        if match is None:
            wanted = "on-demand, spot, or KIND CR-ID ZONE such as reservation cr-0123456789abcdef0 us-east-1a"
            values.refuse("capacityOrder", wanted, item)
            continue
        way = Way(match["kind"] or item, match["id"], match["zone"])
        if way in found:
            values.refuse("capacityOrder", "each way once", item)
        found.append(way)
    return tuple(found)


def _single(values: Values, known: NetworkFacts | None, maximum: int) -> CapacitySettings:
    kind = str(values.checked("capacityType"))
    if kind in CAPACITIES:
        _sold(values, "capacityType", kind, known)
    reservation_id = values.text("capacityReservationId")
    reserved = kind in (RESERVATION, CAPACITY_BLOCK)
    if reserved:
        if not re.fullmatch(RESERVATION_ID, reservation_id):
            values.refuse("capacityReservationId", f"the {kind}'s id, cr- and 17 hexadecimal digits")
    elif reservation_id:
        values.refuse(
            "capacityReservationId", f"nothing with capacityType {kind}, or reservation or capacity-block there"
        )
    _block_holds(values, kind, maximum)
    return CapacitySettings(kind=kind, reservation_id=reservation_id if reserved else None)


def _sold(values: Values, key: str, kind: str, known: NetworkFacts | None) -> None:
    if known is not None and kind not in known.capacities:
        sold = ", ".join(choice for choice in CAPACITIES if choice in known.capacities)
        values.refuse(key, f"a way that {known.instance_type} is sold: {sold}")


def _block_holds(values: Values, kind: str, maximum: int) -> None:
    if kind == CAPACITY_BLOCK and maximum > MOST_NODES_PER_BLOCK:
        name = "gpuNodeMaximum" if values.number("gpuNodeMaximum") else "gpuNodeCount"
        values.refuse(name, f"at most {MOST_NODES_PER_BLOCK}, the most instances of one capacity block")
