"""flightline incidents: what happened to sick nodes, from detection to return."""

from __future__ import annotations

import click
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..console import Console
from ..healing.journal.incident import Incident
from ..healing.journal.ledger import Ledger, open_ledger
from ..healing.journal.machine import NodeState
from ..healing.journal.times import Precision, Took, precision, took
from ..report.text import clean, spell
from . import completing, options

MOST_EVENTS = 12


@click.command(
    cls=options.Command,
    example="flightline incidents --open\nflightline incidents gpu-07\nflightline incidents --json 1650000000001",
    epilog="Exit status: 0 when no incident is open, 1 when one is, 2 when the store cannot be read.",
)
@click.argument("node", required=False, default="", shell_complete=completing.hosts)
@click.option("--open", "only_open", is_flag=True, help="Only those that are not over.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), help="Most incidents to show.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@options.store
@click.pass_context
def command(ctx: click.Context, node: str, only_open: bool, limit: int, as_json: bool, store_path: str | None) -> None:
    """List incidents, newest first, and how long they took: all, or those of a host, an instance id or a GPU serial."""
    ledger: Ledger = open_ledger(store_path)
    try:
        found = ledger.incidents(only_open=only_open, name=node, limit=limit)
        every = found if node else ledger.incidents()
        stops = ledger.stops()
    finally:
        ledger.close()
    if as_json:
        spans = [vars(one) for one in took(every)]
        listed = [one.to_dict() for one in found]
        right = precision(every)
        drains = {**vars(right), "precision": right.share}
        options.print_json({"incidents": listed, "took": spans, "drains": drains, "breakers": dict(stops)})
    else:
        _show(found, took(every), precision(every), dict(stops), bool(node))
    ctx.exit(1 if any(one.is_open for one in found) else 0)


def _show(found: list[Incident], spans: list[Took], right: Precision, stops: dict[str, str], full: bool) -> None:
    console = Console(markup=False, highlight=False)
    for why in stops.values():
        console.print(Text(f"STOP {clean(why)}", "bold red"))
    if not found:
        console.print("no incident")
    for one in found:
        _incident(console, one, full or len(found) == 1)
    if spans:
        console.print(_times(spans))
    if right.share is not None:
        judged = f"{right.sick} were sick and {right.sound} sound"
        console.print(f"of {right.taken_out} taken out, {judged}: precision {right.share:.0%}")


def _incident(console: Console, one: Incident, full: bool) -> None:
    state = str(one.state) if one.is_open else (one.events[-1].what if one.events else "over")
    style = "bold red" if one.state is NodeState.HELD else "bold yellow" if one.is_open else "green"
    console.print(Text(clean(f"{one.id}  {one.host} {one.instance_id}  {state}"), style))
    lines = Table.grid(padding=(0, 2))
    for column in ("at", "what", "who and why"):
        lines.add_column(overflow="fold", no_wrap=column != "who and why")
    events = one.events if full else one.events[:1] + one.events[1:][-3:]
    left_out = len(one.events) - len(events)
    for number, event in enumerate(events):
        if number == 1 and left_out:
            lines.add_row("", Text(f"+{left_out} more", "dim"), "")
        said = f"{event.actor}: {event.why}" if event.why else event.actor
        jobs = f" (jobs {', '.join(event.jobs)})" if event.jobs else ""
        lines.add_row(
            Text(event.at[:19].replace("T", " "), "dim"), Text(clean(str(event.what))), Text(clean(said + jobs))
        )
    console.print(Padding(lines, (0, 0, 1, 2)))


def _times(spans: list[Took]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("took")
    for heading in ("incidents", "mean", "p50", "p90", "p99"):
        table.add_column(heading, justify="right")
    for one in spans:
        values = (one.mean_s, one.p50_s, one.p90_s, one.p99_s)
        table.add_row(
            one.phase, str(one.count), *(f"{value:.1f} s" if value < 60 else spell(value) for value in values)
        )
    return table
