"""What of a cluster still costs, and its removal: flightline leftovers CLUSTER."""

import json
import re
from collections.abc import Iterable

import click
from rich.table import Table

from flightline.cloud.clients import Clients, explain, is_aws_error
from flightline.cloud.regions import known_region
from flightline.commands import options
from flightline.console import EXIT_BROKEN, EXIT_GO, EXIT_NO_GO, Console
from flightline.contract import TAG_CLUSTER
from flightline.money.leftovers import FoundLeftovers, Owner, find, remove
from flightline.report.text import clean, count
from infra.planning.names import Names, Place, names

ANY_ZONE = "ANY-ZONE"
_LIVE_ONE = "instance, NAT gateway or endpoint"
_LIVE_MANY = "instances, NAT gateways and endpoints"


def owner(cluster: str, place: Place) -> Owner:
    """What a stack of that name calls its own there."""
    given: Names = names(cluster, place, ANY_ZONE)
    logs = [getattr(given, f"{kind}_log_group") for kind in ("results", "system", "flow", "fsx", "kubernetes")]
    functions = (f"/aws/lambda/{name}" for name in given.functions.values())
    buckets = [getattr(given, f"{kind}_bucket") for kind in ("data", "checkpoints", "results", "transfer", "trail")]
    exact = (*logs, *functions, *buckets, given.results_table, given.training_table, given.express_bucket)
    pattern = "|".join(map(re.escape, exact)).replace(re.escape(ANY_ZONE), "[a-z0-9-]+")
    return Owner(cluster, TAG_CLUSTER, pattern)


def owners(cluster: str, regions: Iterable[str]) -> dict[str, Owner]:
    """By region, for the account that asks. Raises click's error where AWS does not say which that is."""
    found = {}
    for region in regions:
        try:
            client = Clients(region).get("sts")
            arn = client.get_caller_identity()["Arn"].split(":")
        except Exception as error:
            if is_aws_error(error):
                why = explain(error, "sts:GetCallerIdentity")
                raise click.ClickException(f"saw {why}; wanted the account that asks") from None
            raise
        found[client.meta.region_name] = owner(cluster, Place(arn[1], client.meta.region_name, arn[4]))
    return found


@click.command(
    cls=options.Command,
    example="flightline leftovers flightline-dev --region us-east-1\nflightline leftovers flightline-dev --remove",
    epilog="Exit status: 0 nothing is left, 1 something is, 2 not everything could be asked.",
)
@click.argument("cluster")
@click.option(
    "--region", "regions", multiple=True, help="Region to look in; repeatable. Default: the AWS configuration's."
)
@click.option("--remove", "removes", is_flag=True, help="Delete what no stack and no data needs any more.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(ctx: click.Context, cluster: str, regions: tuple[str, ...], removes: bool, as_json: bool) -> None:
    """List what of CLUSTER still costs money, by its tag and the names its stack gives, after `make down`.

    --remove deletes unattached volumes, unused network interfaces and addresses, snapshots and log groups; never data,
    and nothing at all while the cluster still has instances, NAT gateways or endpoints, or nobody could say whether it
    has.
    """
    found = find(owners(cluster, [known_region(one.strip()) for one in regions] or [""]), Clients)
    if as_json:
        click.echo(json.dumps({"things": [vars(one) for one in found.things], "troubles": found.troubles}, indent=1))
    else:
        _show(found, cluster)
    left = bool(found.things)
    if removes and found.things:
        left = _remove(found)
    ctx.exit(EXIT_BROKEN if found.troubles else EXIT_NO_GO if left else EXIT_GO)


def _show(found: FoundLeftovers, cluster: str) -> None:
    console = Console(markup=False, highlight=False)
    if not found.things and not found.troubles:
        console.print(f"nothing of {cluster} is left")
    table = Table(box=None, pad_edge=False, show_header=False)
    for thing in found.things:
        what = "--remove deletes it" if thing.removable else thing.why_not
        table.add_row(*map(clean, (thing.region, thing.kind, thing.id, thing.detail, what)))
    if found.things:
        console.print(table)
    for trouble in found.troubles:
        console.print(f"not asked: {clean(trouble)}", soft_wrap=True)


def _remove(found: FoundLeftovers) -> bool:
    """Whether something is left afterwards."""
    if found.live:
        seen = count(len(found.live), _LIVE_ONE, _LIVE_MANY)
        raise click.ClickException(
            f"nothing removed: saw {seen} ({found.live[0].id}), wanted a cluster that is down; "
            "do: make down STACK=..., then again"
        )
    if found.may_live:
        seen = f"no answer about {' and '.join(found.may_live)}"
        raise click.ClickException(
            f"nothing removed: saw {seen}, wanted a cluster that is down; do: mend what was not asked, then again"
        )
    left = sum(not thing.removable for thing in found.things)
    for thing, trouble in remove(found, Clients):
        left += bool(trouble)
        click.echo(clean(f"not removed: {trouble}" if trouble else f"removed {thing.kind} {thing.id}"), err=True)
    return left > 0
