"""What a stack costs, line by line: flightline cost STACK. Reads the stack's file and Pulumi.yaml's defaults.

Attributes of the questions: AWS Price List, services AmazonEC2, AmazonVPC and AmazonFSx; they have not met the real
API. What is billed by use (requests, stored objects, data moved) cannot be known before, and is named as not counted.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from flightline.cloud.clients import Clients, explain, is_aws_error
from flightline.commands import options
from flightline.console import Console
from flightline.money.bill import HOURLY, MONTHLY, Bill, Line, Priced, priced
from flightline.money.capacity import currency_of, spot_prices
from flightline.money.prices import Price, PriceBook, Query, default_book
from infra import describe
from infra.planning import endpoints

EXIT_BROKEN = 2
ZONES = 2
"""Every stack has two (infra.config.model.Zones)."""
NAT_GATEWAYS = {"none": 0, "one": 1, "per-az": ZONES}
NOT_COUNTED = "S3, DynamoDB, Lambda, SNS, logs, metrics, alarms and data transfer: billed by use"


def lines(given: Mapping[str, Any]) -> Iterator[Line]:
    """The stack's lines, from its settings (describe.values). Raises ValueError without a region."""
    region = str(given.get("aws:region") or "")
    if not region:
        raise ValueError("aws:region: saw none, wanted the stack's region; do: set it in the stack's file")
    yield from _nodes(given, region)
    yield from _network(given, region)
    if int(given["fsxSizeGib"]):
        yield _file_system(given, region)


def _nodes(given: Mapping[str, Any], region: str) -> Iterator[Line]:
    count, size = Decimal(given["gpuNodeCount"]), Decimal(given["rootVolumeGib"])
    yield Line(f"{count} x {given['gpuInstanceType']}", count, _instance(given["gpuInstanceType"], region), idle=False)
    yield Line(f"{count} root volumes, {size} GiB gp3", count * size, _volume(region), idle=False)
    if _true(given["headNode"]) or given["orchestrator"] == "slurm":
        yield Line(
            f"head node {given['headInstanceType']}", Decimal(1), _instance(given["headInstanceType"], region), False
        )
        yield Line("head node's root volume", Decimal(given["headRootVolumeGib"]), _volume(region), idle=False)


def _network(given: Mapping[str, Any], region: str) -> Iterator[Line]:
    gateways = NAT_GATEWAYS.get(str(given["natGateways"]), 0)
    if gateways:
        family = (("productFamily", "NAT Gateway"),)
        query = Query("AmazonEC2", region, HOURLY, family, r"([A-Z0-9]+-)?NatGateway-Hours")
        yield Line(f"{gateways} NAT gateway{'s' * (gateways > 1)}", Decimal(gateways), query)
        address = Query("AmazonVPC", region, HOURLY, (), r"([A-Z0-9]+-)?PublicIPv4:InUseAddress")
        yield Line(f"{gateways} public address{'es' * (gateways > 1)}", Decimal(gateways), address)
    if _true(given["interfaceEndpoints"]):
        made = len(endpoints.interfaces(_true(given["headNode"]) or given["orchestrator"] == "slurm")) * ZONES
        query = Query("AmazonVPC", region, HOURLY, (), r"([A-Z0-9]+-)?VpcEndpoint-Hours")
        yield Line(f"{made} endpoint interfaces", Decimal(made), query)


def _file_system(given: Mapping[str, Any], region: str) -> Line:
    size, speed = Decimal(given["fsxSizeGib"]), str(given["fsxThroughput"])
    kind = (("productFamily", "Storage"), ("fileSystemType", "Lustre"), ("storageType", "SSD"))
    query = Query("AmazonFSx", region, MONTHLY, (*kind, ("throughputCapacity", speed)))
    return Line(f"FSx for Lustre {size} GiB, {speed} MB/s per TiB", size, query)


def _instance(instance_type: str, region: str) -> Query:
    fixed = {"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used"}
    return Query("AmazonEC2", region, HOURLY, (("instanceType", instance_type), *fixed.items()), ".*BoxUsage:.*")


def _volume(region: str) -> Query:
    return Query("AmazonEC2", region, MONTHLY, (("productFamily", "Storage"), ("volumeApiName", "gp3")))


def _true(value: Any) -> bool:
    return value is True or str(value).lower() == "true"


def bill(given: Mapping[str, Any], book: PriceBook, clients: Clients | None) -> Bill:
    """The stack's bill. clients: where to ask for spot prices; None asks nobody."""
    whole = priced(lines(given), book.price)
    nodes = whole.lines[0]
    kind = str(given["capacityType"])
    if kind == "spot":
        nodes = _spot(nodes, given, clients)
    elif kind == "capacity-block":
        note = f"paid when the block was bought; {_on_demand(nodes)}"
        nodes = Priced(replace(nodes.line, query=None, note=note), None)
    elif kind == "reservation":
        nodes = replace(nodes, line=replace(nodes.line, idle=True, note="paid while reserved, also unused"))
    return Bill([nodes, *whole.lines[1:]])


def _spot(nodes: Priced, given: Mapping[str, Any], clients: Clients | None) -> Priced:
    region, noted = str(given["aws:region"]), replace(nodes.line, note=f"spot; {_on_demand(nodes)}")
    if clients is None:
        return Priced(noted, None, "spot prices change: nobody was asked (--offline)")
    now = datetime.now(timezone.utc)
    try:
        offered = spot_prices(clients, str(given["gpuInstanceType"]), now)
    except Exception as error:
        if is_aws_error(error):
            return Priced(noted, None, explain(error, "ec2:DescribeSpotPriceHistory"))
        raise
    zone = str(given.get("availabilityZone") or "")
    here = [one for one in offered if not zone or zone in (one.zone, one.zone_id)]
    if not here:
        return Priced(noted, None, f"saw no spot price of it in {zone or region}, wanted one; do: choose another zone")
    best = min(here, key=lambda one: one.price)
    noted = replace(noted, note=f"spot in {best.zone}; {_on_demand(nodes)}")
    return Priced(noted, Price(best.price, currency_of(region), HOURLY, now.isoformat(timespec="seconds"), "EC2"))


def _on_demand(nodes: Priced) -> str:
    if nodes.price is None:
        return "on-demand price not known"
    return f"on demand {nodes.price.amount:f} {nodes.price.currency} a node-hour"


def as_dict(whole: Bill, budget: Decimal) -> dict[str, Any]:
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
        for one in whole.lines
    ]
    sums = {name: float(value) for name, value in _sums(whole).items()}
    over = None if not budget or not whole.complete else whole.per_month() > budget
    head = {"currency": whole.currency, "complete": whole.complete, "budget": float(budget), "over_budget": over}
    return {**head, **sums, "lines": rows, "not_counted": NOT_COUNTED}


def _sums(whole: Bill) -> dict[str, Decimal]:
    return {
        "per_hour": whole.per_hour(),
        "per_month": whole.per_month(),
        "idle_per_hour": whole.per_hour(idle=True),
        "idle_per_month": whole.per_month(idle=True),
    }


def show(whole: Bill, budget: Decimal, console: Console) -> None:
    """The bill for people."""
    table = Table(box=None, pad_edge=False)
    table.add_column("what", overflow="fold")
    table.add_column("an hour", justify="right")
    table.add_column("730 hours", justify="right")
    for one in whole.lines:
        cost = one.per_hour
        cells = ("?", "?") if cost is None else (f"{cost:,.3f}", f"{cost * 730:,.0f}")
        table.add_row(one.line.what + (f" ({one.line.note})" if one.line.note else ""), *cells)
    if whole.currency:
        least, sums = "" if whole.complete else ", at least", _sums(whole)
        for title, key in ((f"in all, {whole.currency}{least}", ""), (f"without nodes{least}", "idle_")):
            table.add_row(title, f"{sums[f'{key}per_hour']:,.3f}", f"{sums[f'{key}per_month']:,.0f}")
    console.print(table)
    for why in dict.fromkeys(one.why for one in whole.lines if one.why):
        console.print(f"no price: {why}", soft_wrap=True)
    old = sorted({one.price.as_of[:10] for one in whole.lines if one.price})
    if old:
        console.print(
            f"prices as of {old[0]}{' to ' + old[-1] if old[1:] else ''}; not counted: {NOT_COUNTED}", soft_wrap=True
        )
    if budget and whole.currency:
        console.print(_against(whole, budget))


def _against(whole: Bill, budget: Decimal) -> str:
    month = whole.per_month()
    least = "" if whole.complete else "at least "
    word = "over" if month > budget else "within" if whole.complete else "perhaps within"
    return f"{least}{month:,.0f} a month is {word} monthlyBudgetUsd, {budget:,}"


@click.command(cls=options.Command, example="flightline cost dev\nflightline cost dev --offline --json")
@click.argument("stack")
@click.option("--offline", is_flag=True, help="Ask nobody: prices of earlier calls only.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--project", default=".", type=click.Path(path_type=Path), help="Where Pulumi.yaml is.", show_default=True
)
@click.pass_context
def command(ctx: click.Context, stack: str, offline: bool, as_json: bool, project: Path) -> None:
    """Say what STACK costs by the hour and the month, with its nodes and without, before `make up` or after.

    Prices come from the AWS Price List API (pricing:GetProducts) and are kept beside the run store for a week. What has
    no price is named and never counted as nothing. Exit status: 0, or 2 when no price at all is known.
    """
    try:
        given = describe.values(stack, project)
        book = default_book(offline)
        whole = bill(given, book, None if offline else Clients(str(given.get("aws:region") or "")))
    except FileNotFoundError as error:
        raise click.ClickException(
            f"saw no {error.filename}, wanted the stack's file; do: name another stack"
        ) from None
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    budget = Decimal(given["monthlyBudgetUsd"])
    if as_json:
        click.echo(json.dumps(as_dict(whole, budget), indent=1))
    else:
        show(whole, budget, Console(markup=False, highlight=False))
    if not any(one.price for one in whole.lines):
        ctx.exit(EXIT_BROKEN)


if __name__ == "__main__":
    sys.exit(command())
