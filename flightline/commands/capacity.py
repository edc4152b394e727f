"""flightline capacity: where nodes of a type are to be had."""

from __future__ import annotations

from datetime import datetime, timezone

import click
from rich.text import Text

from flightline_node.know.expected import resolve
from flightline_node.model import SettingsError

from ..cloud.clients import Clients
from ..cloud.regions import known_region
from ..console import EXIT_BROKEN, EXIT_GO, EXIT_NO_GO, Console
from ..money import capacity
from ..report.text import clean
from . import options


@click.command(
    cls=options.Command,
    example="flightline capacity p5.48xlarge --nodes 16 --hours 72 --region us-east-1 --region us-west-2",
    epilog="Exit status: 0 there is an offer for all nodes, 1 there is none, 2 nobody could be asked.",
)
@click.argument("instance_type", metavar="TYPE")
@click.option("--nodes", default=1, show_default=True, type=click.IntRange(1, 5000), help="Nodes wanted.")
@click.option("--hours", default=24, show_default=True, type=click.IntRange(1, 182 * 24), help="For how long.")
@click.option("--region", "regions", multiple=True, help="Region to ask; repeatable. Default: the AWS configuration's.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(
    ctx: click.Context, instance_type: str, nodes: int, hours: int, regions: tuple[str, ...], as_json: bool
) -> None:
    """Rank what is on offer for TYPE: the account's reservations, capacity blocks, spot.

    Enough nodes come first, then what is paid already, then the lowest price. Nothing is bought. A stack moves to
    another region by its setting aws:region, and into a block by capacityType and capacityReservationId.
    """
    resolve(instance_type)
    wanted = capacity.CapacityRequest(instance_type, nodes, hours, datetime.now(timezone.utc))
    places = [known_region(region.strip()) for region in regions or (_configured(),)]
    found = capacity.find(wanted, list(dict.fromkeys(places)), Clients)
    if as_json:
        options.print_json({"offers": [_as_dict(one) for one in found.offers], "troubles": found.troubles})
    else:
        _show(found, wanted)
    ctx.exit(_status(found))


def _configured() -> str:
    import boto3

    region = boto3.session.Session().region_name
    if not region:
        raise SettingsError("saw no AWS region, wanted one; do: --region us-east-1, or set AWS_DEFAULT_REGION")
    return str(region)


def _status(found: capacity.FoundOffers) -> int:
    if any(offer.enough for offer in found.offers):
        return EXIT_GO
    return EXIT_BROKEN if found.troubles and not found.offers else EXIT_NO_GO


def _as_dict(offer: capacity.Offer) -> dict[str, object]:
    price = offer.per_node_hour
    return {**vars(offer), "per_node_hour": None if price is None else float(price)}


def _show(found: capacity.FoundOffers, wanted: capacity.CapacityRequest) -> None:
    console = Console(markup=False, highlight=False)
    if found.offers:
        headings = ("kind", "zone", "nodes", "starts", "node-hour", "total", "score", "id")
        table = options.table(*headings, right=("nodes", "score"))
        for offer in found.offers:
            table.add_row(*map(clean, _cells(offer, wanted)), style="" if offer.enough else "dim")
        console.print(table)
    else:
        console.print(f"no offer of {wanted.nodes} x {wanted.instance_type} for {wanted.hours} h")
    for trouble in found.troubles:
        console.print(Text(clean(trouble), "yellow"), soft_wrap=True)


def _cells(offer: capacity.Offer, wanted: capacity.CapacityRequest) -> list[str]:
    hours = capacity.block_hours(wanted.hours) if offer.kind == "capacity-block" else wanted.hours
    price, total = "paid already", "-"
    if offer.per_node_hour is not None:
        price = f"{offer.per_node_hour:.2f} {offer.currency}"
        total = f"{offer.per_node_hour * offer.nodes * hours:,.0f}"
    score = "-" if offer.score is None else str(offer.score)
    return [offer.kind, offer.zone, str(offer.nodes), offer.starts or "now", price, total, score, offer.id or "-"]
