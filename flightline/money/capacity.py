"""Where some nodes of a type are to be had: spot, capacity blocks and the account's own reservations, ranked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from ..cloud.clients import Clients, explain, is_aws_error

LINUX = "Linux/UNIX"


@dataclass(frozen=True)
class Offer:
    """One way to get the nodes.

    kind: reservation, capacity-block or spot. per_node_hour: price of one node for an hour; None for what the account
    pays already. score: spot's placement score, 1 to 10, 10 the likeliest (EC2 user guide). starts: ISO 8601; "" is
    now. enough: all nodes asked for.
    """

    kind: str
    region: str
    zone: str
    nodes: int
    starts: str = ""
    per_node_hour: Decimal | None = None
    currency: str = "USD"
    score: int | None = None
    id: str = ""
    enough: bool = True


@dataclass(frozen=True)
class CapacityRequest:
    """nodes of instance_type for some hours, at now."""

    instance_type: str
    nodes: int
    hours: int
    now: datetime


@dataclass
class FoundOffers:
    """Offers, best first, and a sentence for everything that could not be asked."""

    offers: list[Offer] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


def find(wanted: CapacityRequest, regions: Sequence[str], clients: Callable[[str], Clients]) -> FoundOffers:
    """Ask every region for everything; what is denied or not sold there is a trouble, not the end."""
    found = FoundOffers()
    for region in regions:
        _find_in(region, clients(region), wanted, found)
    found.offers.sort(key=rank)
    return found


def _find_in(region: str, asked: Clients, wanted: CapacityRequest, found: FoundOffers) -> None:
    scores = _ask(found, f"{region}: ec2:GetSpotPlacementScores", lambda: _scores(asked, region, wanted), {})
    questions: dict[str, Callable[[], list[Offer]]] = {
        "DescribeCapacityReservations": lambda: _reservations(asked, region, wanted),
        "DescribeCapacityBlockOfferings": lambda: _blocks(asked, region, wanted),
        "DescribeSpotPriceHistory": lambda: _spot(asked, region, wanted, scores),
    }
    for action, question in questions.items():
        found.offers += _ask(found, f"{region}: ec2:{action}", question, [])


def _ask(found: FoundOffers, what: str, question: Callable[[], Any], nothing: Any) -> Any:
    try:
        return question()
    except Exception as error:
        if not is_aws_error(error) and not isinstance(error, (KeyError, TypeError, ValueError, InvalidOperation)):
            raise
        said = explain(error, what) if is_aws_error(error) else f"{what}: saw an answer that cannot be read ({error!r})"
        found.troubles.append(said)
        return nothing


def rank(offer: Offer) -> tuple[Any, ...]:
    """Enough nodes first, then what is paid already, then the cheapest; of equal ones the sooner, the likelier."""
    price = offer.per_node_hour if offer.per_node_hour is not None else Decimal(0)
    return not offer.enough, offer.currency, price, offer.starts, -(offer.score or 0), offer.region, offer.zone


@dataclass(frozen=True)
class SpotPrice:
    """The present price of an hour in one zone."""

    zone: str
    zone_id: str
    price: Decimal
    at: datetime


def spot_prices(clients: Clients, instance_type: str, now: datetime) -> list[SpotPrice]:
    """One for each zone that sells the type. Raises botocore's errors."""
    pages = (
        clients.get("ec2")
        .get_paginator("describe_spot_price_history")
        .paginate(InstanceTypes=[instance_type], ProductDescriptions=[LINUX], StartTime=now)
    )
    newest: dict[str, SpotPrice] = {}
    for entry in (entry for page in pages for entry in page["SpotPriceHistory"]):
        zone, price = entry["AvailabilityZone"], Decimal(entry["SpotPrice"])
        one = SpotPrice(zone, entry.get("AvailabilityZoneId", ""), price, entry["Timestamp"])
        newest[zone] = max(newest.get(zone, one), one, key=lambda seen: seen.at)
    return list(newest.values())


def _spot(clients: Clients, region: str, wanted: CapacityRequest, scores: Mapping[str, int]) -> list[Offer]:
    return [
        Offer(
            "spot",
            region,
            one.zone,
            wanted.nodes,
            per_node_hour=one.price,
            currency=currency_of(region),
            score=scores.get(one.zone_id),
        )
        for one in spot_prices(clients, wanted.instance_type, wanted.now)
    ]


def _scores(clients: Clients, region: str, wanted: CapacityRequest) -> dict[str, int]:
    """Zone id -> score: a training cluster is in one zone."""
    answer = clients.get("ec2").get_spot_placement_scores(
        InstanceTypes=[wanted.instance_type],
        TargetCapacity=wanted.nodes,
        RegionNames=[region],
        SingleAvailabilityZone=True,
    )
    return {entry["AvailabilityZoneId"]: int(entry["Score"]) for entry in answer["SpotPlacementScores"]}


def _blocks(clients: Clients, region: str, wanted: CapacityRequest) -> list[Offer]:
    pages = (
        clients.get("ec2")
        .get_paginator("describe_capacity_block_offerings")
        .paginate(
            InstanceType=wanted.instance_type,
            InstanceCount=wanted.nodes,
            CapacityDurationHours=block_hours(wanted.hours),
        )
    )
    return [_block(entry, region) for page in pages for entry in page["CapacityBlockOfferings"]]


def block_hours(hours: int) -> int:
    """The shortest block that lasts so long: whole days to 14, then whole weeks (EC2 user guide, Capacity Blocks)."""
    days = -(-hours // 24)
    return 24 * (days if days <= 14 else -(-days // 7) * 7)


def _block(entry: Mapping[str, Any], region: str) -> Offer:
    nodes, hours = int(entry["InstanceCount"]), int(entry["CapacityBlockDurationHours"])
    return Offer(
        "capacity-block",
        region,
        entry["AvailabilityZone"],
        nodes,
        starts=entry["StartDate"].isoformat(timespec="minutes"),
        per_node_hour=Decimal(entry["UpfrontFee"]) / (nodes * hours),
        currency=entry["CurrencyCode"],
        id=entry["CapacityBlockOfferingId"],
    )


def _reservations(clients: Clients, region: str, wanted: CapacityRequest) -> list[Offer]:
    filters = [
        {"Name": "instance-type", "Values": [wanted.instance_type]},
        {"Name": "state", "Values": ["active", "scheduled"]},
    ]
    pages = clients.get("ec2").get_paginator("describe_capacity_reservations").paginate(Filters=filters)
    held = (entry for page in pages for entry in page["CapacityReservations"])
    return [_reservation(entry, region, wanted) for entry in held if _lasts(entry, wanted)]


def _lasts(entry: Mapping[str, Any], wanted: CapacityRequest) -> bool:
    end, start = entry.get("EndDate"), entry.get("StartDate") or wanted.now
    return end is None or end >= max(start, wanted.now) + timedelta(hours=wanted.hours)


def _reservation(entry: Mapping[str, Any], region: str, wanted: CapacityRequest) -> Offer:
    scheduled, start = entry["State"] == "scheduled", entry.get("StartDate")
    free = int(entry["TotalInstanceCount"] if scheduled else entry["AvailableInstanceCount"])
    return Offer(
        "reservation",
        region,
        entry["AvailabilityZone"],
        free,
        starts=start.isoformat(timespec="minutes") if scheduled and start else "",
        id=entry["CapacityReservationId"],
        enough=free >= wanted.nodes,
    )


def currency_of(region: str) -> str:
    """What AWS bills in: yuan in China, US dollars elsewhere."""
    return "CNY" if region.startswith("cn-") else "USD"
