"""flightline waivers: what is set aside, and for how long still."""

from __future__ import annotations

from datetime import date, datetime, timezone

import click
from rich.text import Text

from ..console import Console
from ..fleet.judgement import judge_run
from ..fleet.lookup import find
from ..fleet.waiver_list import VARIABLE, ListedWaiver, as_dict, from_report, from_variables
from ..report.text import clean, count, host_ranges, short_list
from ..run import inventory as inventories
from ..run import playbooks
from ..run.locate import open_store
from . import options

STYLES = {"active": "green", "soon": "yellow", "expired": "bold red"}
TITLES = {"expired": "Expired (no preflight of their hosts begins)", "soon": "Soon to expire", "active": "Active"}


@click.command(
    cls=options.Command,
    example="flightline waivers -i inventory/my_cluster.yml --days 30\nflightline waivers --run latest --json",
    epilog="Exit status: 0 all hold, 1 one has expired or cannot be read, 2 the inventory or the run cannot be read.",
)
@click.option("-i", "--inventory", multiple=True, metavar="PATH", help="Inventory; default the embedded demo fleet.")
@click.option("--run", metavar="RUN", help="Those that a run leaned on, instead of the inventory's.")
@click.option("--days", default=14, show_default=True, type=click.IntRange(0), help="What counts as soon.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@options.store
@click.pass_context
def command(
    ctx: click.Context, inventory: tuple[str, ...], run: str | None, days: int, as_json: bool, store_path: str | None
) -> None:
    """List waivers: expired, soon to expire, active; from an inventory, or as a run leaned on them."""
    if run and inventory:
        raise click.UsageError("saw -i and --run, wanted one of them")
    broken: list[str] = []
    if run:
        with open_store(store_path) as store:
            found, broken = from_report(judge_run(store, find(store, run).run_id))
    else:
        hosts = inventories.hosts(playbooks.sources(inventory))
        found, broken = from_variables({host: given.get(VARIABLE) for host, given in hosts.items()})
    today = datetime.now(timezone.utc).date()
    if as_json:
        listed = [as_dict(one, today, days) for one in found]
        options.print_json({"waivers": listed, "unreadable": broken})
    else:
        _print(found, broken, today, days)
    ctx.exit(1 if broken or any(one.days_left(today) < 0 for one in found) else 0)


def _print(found: list[ListedWaiver], broken: list[str], today: date, days: int) -> None:
    console = Console(highlight=False)
    for state, title in TITLES.items():
        chosen = [one for one in found if one.state(today, days) == state]
        if chosen:
            console.print(Text(f"{title}: {len(chosen)}", "bold"))
        for one in chosen:
            console.print(_line(one, today, STYLES[state]), soft_wrap=True)
    for text in broken:
        console.print(Text(f"cannot be read: {clean(text)}", "bold red"), soft_wrap=True)
    if not found and not broken:
        console.print(Text("no waivers"))


def _line(one: ListedWaiver, today: date, style: str) -> Text:
    waiver, left = one.waiver, one.days_left(today)
    when = f"{count(left, 'day')} left" if left >= 0 else f"{count(-left, 'day')} ago"
    facts = f" {clean(waiver.check)} {clean(waiver.scope)}, {clean(waiver.owner)}: {clean(waiver.reason)}"
    return Text.assemble((f"  {waiver.expiry} ({when})", style), facts, f" [{short_list(host_ranges(one.hosts), 4)}]")
