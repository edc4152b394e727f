"""What a stack costs, line by line: flightline cost STACK. Reads the stack's file and Pulumi.yaml's defaults.

Attributes of the questions: AWS Price List, services AmazonEC2, AmazonVPC, AmazonFSx and AmazonS3 (usage types: S3 user
guide, "Understanding your AWS billing and usage reports"); none has met the real API. What is billed by use
(requests, stored objects, data moved) cannot be known before: of storage the rate is shown, or the cost of the size
that is given; the rest is named as not counted.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from flightline.cloud.clients import Clients, explain, is_aws_error
from flightline.cloud.regions import known_region
from flightline.commands import options
from flightline.console import EXIT_BROKEN, Console
from flightline.money.bill import HOURLY, MONTHLY, REQUESTS, Bill, BillLine, Priced, priced
from flightline.money.capacity import SpotPrice, currency_of, spot_prices
from flightline.money.prices import Price, PriceBook, PriceError, Query, default_book
from infra import describe
from infra.config.model import BY_NAME, EKS, NAT_ONE, NAT_PER_AZ
from infra.config.nodes import instance_facts, most_nodes
from infra.config.values import Values
from infra.planning import endpoints

DOLLARS = "USD"
ZONES = 2
"""Every stack has two (infra.config.model.ZoneSettings), or as many as it names."""
BILLED = (
    *("gpuInstanceType", "gpuNodeCount", "rootVolumeGib", "headNode", "headInstanceType", "headRootVolumeGib"),
    *("orchestrator", "cpuInstanceType", "cpuNodeCount", "cpuRootVolumeGib", "natGateways", "interfaceEndpoints"),
    *("fsxSizeGib", "fsxThroughput", "fsxDataRepository", "s3Express", "capacityType", "spotInstanceTypes"),
    *("spotMaxPriceUsd", "spotAllocation", "availabilityZones", "monthlyBudgetUsd", "capacityOrder", "capacityChosen"),
    *("vpcId", "existingEndpoints", "eksCluster"),
)
"""The settings that a bill is made of."""
NOT_COUNTED = "requests, DynamoDB, Lambda, SNS, logs, metrics, alarms and data transfer: billed by use"


@dataclass(frozen=True)
class Sizes:
    """What is stored, in GiB; None: not known, so only its rate is told."""

    s3_gib: int | None = None
    express_gib: int | None = None


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the bill is made of, as `make up` takes them. Raises ValueError with every mistake in them."""
    region = str(given.get("aws:region") or "")
    if not region:
        raise ValueError("aws:region: saw none, wanted the stack's region; do: set it in the stack's file")
    known_region(region)
    values = Values({name: value for name, value in given.items() if name in BY_NAME})
    instance_facts(values)
    most_nodes(values)
    found = {name: values.checked(name) for name in BILLED}
    wrong = [mistake for mistake in values.mistakes if mistake.key in BILLED]
    if wrong:
        raise ValueError("; ".join(map(str, wrong)) + "; do: correct the stack's file")
    return {**given, **{name: "" if value is None else value for name, value in found.items()}}


def lines(given: Mapping[str, Any]) -> Iterator[BillLine]:
    """The stack's lines, from its settings (`checked`)."""
    region = str(given["aws:region"])
    yield from _nodes(given, region)
    yield from _network(given, region)
    if int(given["fsxSizeGib"]):
        yield _file_system(given, region)


def _nodes(given: Mapping[str, Any], region: str) -> Iterator[BillLine]:
    count, size = Decimal(given["gpuNodeCount"]), Decimal(given["rootVolumeGib"])
    yield BillLine(
        f"{count} x {given['gpuInstanceType']}", count, _instance(given["gpuInstanceType"], region), idle=False
    )
    yield BillLine(f"{count} root volumes, {size} GiB gp3", count * size, _volume(region), idle=False)
    if given["orchestrator"] == EKS:
        yield from () if given["eksCluster"] else _kubernetes(given, region)
    elif _true(given["headNode"]) or given["orchestrator"] == "slurm":
        yield BillLine(
            f"head node {given['headInstanceType']}", Decimal(1), _instance(given["headInstanceType"], region), False
        )
        yield BillLine("head node's root volume", Decimal(given["headRootVolumeGib"]), _volume(region), idle=False)


def _kubernetes(given: Mapping[str, Any], region: str) -> Iterator[BillLine]:
    """Both stay when the GPU nodes go: the cluster's own pods live on the nodes without a GPU."""
    count, size = Decimal(given["cpuNodeCount"]), Decimal(given["cpuRootVolumeGib"])
    query = Query("AmazonEKS", region, HOURLY, (), r"([A-Z0-9]+-)?AmazonEKS-Hours:perCluster")
    yield BillLine("EKS cluster", Decimal(1), query)
    yield BillLine(f"{count} x {given['cpuInstanceType']}", count, _instance(given["cpuInstanceType"], region))
    yield BillLine(f"{count} root volumes of those, {size} GiB gp3", count * size, _volume(region))


def _network(given: Mapping[str, Any], region: str) -> Iterator[BillLine]:
    zones = max(ZONES, len(_names(given["availabilityZones"])))
    gateways = 0 if given["vpcId"] else {NAT_ONE: 1, NAT_PER_AZ: zones}.get(str(given["natGateways"]), 0)
    if gateways:
        family = (("productFamily", "NAT Gateway"),)
        query = Query("AmazonEC2", region, HOURLY, family, r"([A-Z0-9]+-)?NatGateway-Hours")
        yield BillLine(f"{gateways} NAT gateway{'s' * (gateways > 1)}", Decimal(gateways), query)
        address = Query("AmazonVPC", region, HOURLY, (), r"([A-Z0-9]+-)?PublicIPv4:InUseAddress")
        yield BillLine(f"{gateways} public address{'es' * (gateways > 1)}", Decimal(gateways), address)
    if _true(given["interfaceEndpoints"]):
        head = given["orchestrator"] == "slurm" or (_true(given["headNode"]) and given["orchestrator"] != EKS)
        wanted = endpoints.interfaces(head, given["orchestrator"] == EKS)
        made = len(set(wanted) - set(given["existingEndpoints"])) * ZONES
        query = Query("AmazonVPC", region, HOURLY, (), r"([A-Z0-9]+-)?VpcEndpoint-Hours")
        yield BillLine(f"{made} endpoint interfaces", Decimal(made), query)


def _file_system(given: Mapping[str, Any], region: str) -> BillLine:
    size, speed = Decimal(given["fsxSizeGib"]), str(given["fsxThroughput"])
    kind = (("productFamily", "Storage"), ("fileSystemType", "Lustre"), ("storageType", "SSD"))
    query = Query("AmazonFSx", region, MONTHLY, (*kind, ("throughputCapacity", speed)))
    return BillLine(f"FSx for Lustre {size} GiB, {speed} MB/s per TiB", size, query)


def stored(given: Mapping[str, Any], sizes: Sizes) -> tuple[list[BillLine], list[BillLine]]:
    """What is stored, as lines where its size is known, and else as rates; a preload is always a rate.

    A preload asks S3 for each file at least once; S3 to FSx within the region costs no transfer.
    """
    region, known, rates = str(given["aws:region"]), [], []
    kinds = [("S3 Standard", "", sizes.s3_gib)]
    if _true(given["s3Express"]):
        kinds.append(("S3 Express One Zone", "XZ-", sizes.express_gib))
    for name, word, size in kinds:
        query = Query("AmazonS3", region, MONTHLY, (), rf"([A-Z0-9]+-)?TimedStorage-{word}ByteHrs")
        if size is None:
            rates.append(BillLine(name, Decimal(1), query))
        else:
            known.append(BillLine(f"{name}, {size} GiB", Decimal(size), query))
    if int(given["fsxSizeGib"]) and given["fsxDataRepository"]:
        query = Query("AmazonS3", region, REQUESTS, (), r"([A-Z0-9]+-)?Requests-Tier2")
        rates.append(BillLine("preload of FSx, each file at least once", Decimal(1), query))
    return known, rates


def _instance(instance_type: str, region: str) -> Query:
    fixed = {"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used"}
    return Query("AmazonEC2", region, HOURLY, (("instanceType", instance_type), *fixed.items()), ".*BoxUsage:.*")


def _volume(region: str) -> Query:
    return Query("AmazonEC2", region, MONTHLY, (("productFamily", "Storage"), ("volumeApiName", "gp3")))


def _true(value: Any) -> bool:
    return value is True or str(value).lower() == "true"


def bill(given: Mapping[str, Any], book: PriceBook, clients: Clients | None, sizes: Sizes = Sizes()) -> Bill:
    """The stack's bill. clients: where to ask for spot prices; None asks nobody."""
    total = priced(lines(given), book.price)
    known, rates = stored(given, sizes)
    nodes = total.lines[0]
    kind = _kind(given)
    if kind == "spot":
        nodes = _spot(nodes, given, clients)
    elif kind == "capacity-block":
        note = f"paid when the block was bought; {_on_demand(nodes)}"
        nodes = Priced(replace(nodes.line, query=None, note=note), None)
    elif kind == "reservation":
        nodes = _reserved(nodes)
    return Bill([nodes, *total.lines[1:], *priced(known, book.price).lines], priced(rates, book.price).lines)


def _kind(given: Mapping[str, Any]) -> str:
    """How the nodes are bought: of several ways in the one in use."""
    order, chosen = _names(given["capacityOrder"]), str(given["capacityChosen"] or "")
    used = chosen if chosen in order else next(iter(order), str(given["capacityType"]))
    return used.partition(" ")[0]


def _reserved(nodes: Priced) -> Priced:
    noted = replace(nodes, line=replace(nodes.line, idle=True, note="paid while reserved, also unused"))
    if nodes.line.quantity:
        return noted
    why = "the reservation's size is not in the stack's file, wanted it for gpuNodeCount 0; do: flightline capacity"
    return replace(noted, price=None, why=why)


def _spot(nodes: Priced, given: Mapping[str, Any], clients: Clients | None) -> Priced:
    """The nodes at the spot price.

    Of several types EC2 chooses by how much it has of each, which no price shows: the dearest within the cap is
    counted.
    """
    types = [str(given["gpuInstanceType"]), *_names(given["spotInstanceTypes"])]
    noted = replace(nodes.line, note=f"spot; {_on_demand(nodes)}")
    if clients is None:
        return Priced(noted, None, "spot prices change: nobody was asked (--offline)")
    now, zones = datetime.now(timezone.utc), _names(given["availabilityZones"])
    try:
        best = {name: _cheapest(clients, name, now, zones) for name in types}
    except Exception as error:
        if is_aws_error(error):
            return Priced(noted, None, explain(error, "ec2:DescribeSpotPriceHistory"))
        raise
    missing = ", ".join(name for name, one in best.items() if one is None)
    where = ", ".join(zones) or str(given["aws:region"])
    why = f"saw no spot price of {missing} in {where}, wanted one; do: choose another zone" if missing else ""
    currency = currency_of(str(given["aws:region"]))
    if given["spotMaxPriceUsd"] and currency != DOLLARS:
        why = f"saw spot prices in {currency}, wanted USD as in spotMaxPriceUsd; do: leave it empty"
        return Priced(noted, None, why)
    cap = Decimal(str(given["spotMaxPriceUsd"] or "Infinity"))
    found = [one.price for one in best.values() if one]
    within = [price for price in found if price <= cap]
    if not within:
        dear = f"saw spot prices from {min(found):f}, wanted one within spotMaxPriceUsd, {cap}" if found else ""
        return Priced(noted, None, "; ".join(filter(None, (dear, why))))
    noted = replace(noted, note=f"{_spot_note(given, best)}; {_on_demand(nodes)}")
    amount, as_of = max(within), now.isoformat(timespec="seconds")
    return Priced(noted, Price(amount, currency, HOURLY, as_of, "EC2"), why)


def _cheapest(clients: Clients, instance_type: str, now: datetime, zones: list[str]) -> SpotPrice | None:
    """The lowest price of the type in these zones, or in any; None when there is none."""
    offered = spot_prices(clients, instance_type, now)
    here = [one for one in offered if not zones or {one.zone, one.zone_id} & set(zones)]
    return min(here, key=lambda one: one.price, default=None)


def _spot_note(given: Mapping[str, Any], best: Mapping[str, SpotPrice | None]) -> str:
    known = {name: one for name, one in best.items() if one}
    if len(best) == 1:
        return f"spot in {next(iter(known.values())).zone}"
    each = ", ".join(f"{name} {one.price:f} in {one.zone}" for name, one in known.items())
    cap = f" within {given['spotMaxPriceUsd']}" if given["spotMaxPriceUsd"] else ""
    return f"spot, {given['spotAllocation']} over {len(best)} types; counted: the dearest{cap} of {each}"


def _names(given: Any) -> list[str]:
    """A setting that is a list of names, as the stack's file or Pulumi.yaml has it."""
    found = json.loads(given) if isinstance(given, str) and given else given or []
    return [str(name) for name in found]


def _on_demand(nodes: Priced) -> str:
    if nodes.price is None:
        return "on-demand price not known"
    return f"on demand {nodes.price.amount:f} {nodes.price.currency} a node-hour"


def as_dict(total: Bill, budget: Decimal) -> dict[str, Any]:
    """The bill as JSON has it; money as numbers, null where a price is not known."""
    rows = [
        {
            "what": one.line.what,
            "per_hour": None if one.per_hour is None else float(one.per_hour),
            "idle": one.line.idle,
            "note": one.line.note,
            "as_of": one.price.as_of if one.price else None,
            "why": one.why,
        }
        for one in total.lines
    ]
    known = any(one.price for one in total.lines)
    sums = {name: float(value) if known else None for name, value in _sums(total).items()}
    over = total.per_month() > budget if budget and total.complete and total.currency == DOLLARS else None
    head = {"currency": total.currency, "complete": total.complete, "budget": float(budget), "over_budget": over}
    rates = [
        {"what": one.line.what, "per_unit": float(one.price.amount) if one.price else None, "why": one.why}
        | {"unit": one.line.query.unit if one.line.query else ""}
        for one in total.rates
    ]
    return {**head, **sums, "lines": rows, "rates": rates, "not_counted": NOT_COUNTED}


def _sums(total: Bill) -> dict[str, Decimal]:
    return {
        "per_hour": total.per_hour(),
        "per_month": total.per_month(),
        "idle_per_hour": total.per_hour(idle=True),
        "idle_per_month": total.per_month(idle=True),
    }


def show(total: Bill, budget: Decimal, console: Console) -> None:
    """The bill for people."""
    table = Table(box=None, pad_edge=False)
    table.add_column("what", overflow="fold")
    table.add_column("an hour", justify="right")
    table.add_column("730 hours", justify="right")
    for one in total.lines:
        cost = one.per_hour
        cells = ("?", "?") if cost is None else (f"{cost:,.3f}", f"{cost * 730:,.0f}")
        table.add_row(one.line.what + (f" ({one.line.note})" if one.line.note else ""), *cells)
    if total.currency and any(one.price for one in total.lines):
        least, sums = "" if total.complete else ", at least", _sums(total)
        for title, key in ((f"in all, {total.currency}{least}", ""), (f"without nodes{least}", "idle_")):
            table.add_row(title, f"{sums[f'{key}per_hour']:,.3f}", f"{sums[f'{key}per_month']:,.0f}")
    console.print(table)
    for rate in total.rates:
        if rate.price:
            console.print(_rate(rate.line.what, rate.price), soft_wrap=True)
    for why, names in _unpriced(total).items():
        console.print(f"no price of {', '.join(names)}: {why}", soft_wrap=True)
    old = sorted({one.price.as_of[:10] for one in total.lines if one.price})
    if old:
        console.print(
            f"prices as of {old[0]}{' to ' + old[-1] if old[1:] else ''}; not counted: {NOT_COUNTED}", soft_wrap=True
        )
    if budget and old:
        console.print(_against(total, budget))


def _unpriced(total: Bill) -> dict[str, list[str]]:
    """Why a price is not known -> the lines that it is missing for."""
    found: dict[str, list[str]] = {}
    for one in (*total.lines, *total.rates):
        if one.why:
            found.setdefault(one.why, []).append(one.line.what)
    return found


def _rate(what: str, price: Price) -> str:
    """The price of what is billed by use. A request costs so little that a million of them are named."""
    many = price.unit == REQUESTS
    unit = "million requests" if many else "GB-month"
    return f"by use: {what}: {price.amount * (1_000_000 if many else 1):.6g} {price.currency} a {unit}"


def _against(total: Bill, budget: Decimal) -> str:
    month = total.per_month()
    if total.currency != DOLLARS:
        return (
            f"{month:,.0f} {total.currency} a month is not compared with monthlyBudgetUsd, {budget:,}: no rate is known"
        )
    least = "" if total.complete else "at least "
    word = "over" if month > budget else "within" if total.complete else "perhaps within"
    return f"{least}{month:,.0f} a month is {word} monthlyBudgetUsd, {budget:,}"


@click.command(cls=options.Command, example="flightline cost dev\nflightline cost dev --offline --json")
@click.argument("stack")
@click.option("--offline", is_flag=True, help="Ask nobody: prices of earlier calls only.")
@click.option(
    "--s3-gib", type=click.IntRange(0), help="What S3 will hold: data, checkpoints.  [default: the rate only]"
)
@click.option("--express-gib", type=click.IntRange(0), help="What S3 Express will hold.  [default: the rate only]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--project", default=".", type=click.Path(path_type=Path), help="Where Pulumi.yaml is.", show_default=True
)
@click.pass_context
def command(
    ctx: click.Context,
    stack: str,
    offline: bool,
    s3_gib: int | None,
    express_gib: int | None,
    as_json: bool,
    project: Path,
) -> None:
    """Say what STACK costs by the hour and the month, with its nodes and without, before `make up` or after.

    Prices come from the AWS Price List API (pricing:GetProducts) and are kept beside the run store for a week. What has
    no price is named and never counted as nothing. Exit status: 0, or 2 when no price at all is known.
    """
    try:
        given = checked(describe.values(stack, project))
        book = default_book(offline)
        asked = None if offline else Clients(str(given["aws:region"]))
        total = bill(given, book, asked, Sizes(s3_gib, express_gib))
        budget = Decimal(given["monthlyBudgetUsd"])
        if as_json:
            click.echo(json.dumps(as_dict(total, budget), indent=1))
        else:
            show(total, budget, Console(markup=False, highlight=False))
    except FileNotFoundError as error:
        raise click.ClickException(
            f"saw no {error.filename}, wanted the stack's file; do: name another stack"
        ) from None
    except (ValueError, PriceError) as error:
        raise click.ClickException(str(error)) from None
    if not any(one.price for one in total.lines):
        ctx.exit(EXIT_BROKEN)


if __name__ == "__main__":
    sys.exit(command())
