"""flightline blame: which rank, GPU and node a training run failed, hung or is slow by."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
from rich.text import Text

from ..console import EXIT_BROKEN, EXIT_GO, EXIT_NO_GO, Console
from ..report.text import clean
from ..training import flight, journals
from ..training.blame import RankBlame, blames, suspects
from . import options


@click.command(
    cls=options.Command,
    example="flightline blame /fsx/logs/llama-1\nflightline blame /fsx/logs/llama-1 --json | jq -r '.blames[].node'\n"
    "flightline blame /fsx/logs/llama-1 --quarantine -i inventory/aws_ec2.yml",
    epilog="Exit status: 0 nobody is to blame, 1 somebody is, 2 nothing could be read, or a node not reached.",
)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quarantine", is_flag=True, help="Take nodes that hung, vanished or are slow out of service, with why.")
@click.option("-i", "--inventory", multiple=True, metavar="PATH", help="With --quarantine: where the nodes stand.")
@click.pass_context
def command(ctx: click.Context, folder: Path, as_json: bool, quarantine: bool, inventory: tuple[str, ...]) -> None:
    """Read a run's journals, torchrun's error files and flight recorder dumps, and name who is to blame."""
    if quarantine and not inventory:
        raise click.UsageError("--quarantine: saw no inventory; wanted: one that has the nodes; do: add -i PATH")
    ranks, torn = journals.read(folder)
    dumps, wrong = flight.dumps(folder)
    if not ranks and not dumps:
        message = f"{folder}: saw no journal (rank-*.jsonl), error.json or flight recorder dump of a run"
        click.echo(f"flightline: {clean(message)}; do: name the directory that --journal or --log-dir named", err=True)
        ctx.exit(EXIT_BROKEN)
    found = blames(ranks, dumps)
    if as_json:
        facts = {"schema": "flightline-blame/1", "ranks": len(ranks), "blames": [asdict(one) for one in found]}
        click.echo(json.dumps({**facts, "unreadable": wrong + torn}, indent=1))
    else:
        _show(found, wrong, len(ranks), len(dumps))
    away = _take_out(found, folder, inventory) if quarantine else 0
    ctx.exit(EXIT_BROKEN if away else EXIT_NO_GO if found else EXIT_GO)


def _take_out(found: list[RankBlame], folder: Path, inventory: tuple[str, ...]) -> int:
    """Quarantine the nodes to blame, and say it; how many could not be."""
    from ..healing.steps.nodes import AnsibleNodes
    from ..healing.steps.ports import EdgeError

    nodes, away, ill = AnsibleNodes(inventory), 0, suspects(found, str(folder))
    if found and not ill:
        click.echo(
            "flightline: no node is taken out: it is the program's own, or more than two nodes' at once", err=True
        )
    for node, findings in ill.items():
        try:
            nodes.mark(node, 0, f"flightline: {findings[0]['message']}"[:300], findings, "flightline-blame")
            click.echo(f"flightline: {clean(node)} is in quarantine until a preflight proves it", err=True)
        except EdgeError as error:
            away += 1
            click.echo(f"flightline: {clean(str(error))}; do: drain the node by hand", err=True)
    return away


def _show(found: list[RankBlame], wrong: list[str], ranks: int, dumps: int) -> None:
    console = Console(markup=False, highlight=False, soft_wrap=True)
    for one in found:
        where = f"rank {one.rank} ({one.node or 'node not known'}, GPU {one.device})" if one.rank is not None else "all"
        step = f" at step {one.step}" if one.step is not None else ""
        console.print(Text(f"  {one.kind:<9} {clean(where)}{step}: {clean(one.why)}", "red"))
    for line in wrong:
        console.print(Text(f"  unread    {clean(line)}", "yellow"))
    console.print(f"{len(found) or 'nobody'} to blame; read {ranks} ranks and {dumps} flight recorder dumps")
