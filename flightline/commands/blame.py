"""flightline blame: which rank, GPU and node a training run failed, hung or is slow by."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
from rich.text import Text

from ..console import EXIT_BROKEN, EXIT_GO, EXIT_NO_GO, Console
from ..report.text import clean
from ..training import evidence, flight, journals
from ..training.blame import SLOW, UNKNOWN, RankBlame, blames, suspects
from . import options


@click.command(
    cls=options.Command,
    example="flightline blame /fsx/logs/llama-1\nflightline blame slurm-1234.out\n"
    "flightline blame /fsx/logs/llama-1 --json | jq -r '.blames[].node'\n"
    "flightline blame /fsx/logs/llama-1 --quarantine -i inventory/aws_ec2.yml",
    epilog="Exit status: 0 nobody is to blame, 1 somebody is, or it is not known who, 2 nothing could be read, or a "
    "node not reached.",
)
@click.argument("folder", type=click.Path(exists=True, path_type=Path), metavar="DIR|FILE")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quarantine", is_flag=True, help="Take nodes that hung, vanished or are slow out of service, with why.")
@click.option("-i", "--inventory", multiple=True, metavar="PATH", help="With --quarantine: where the nodes stand.")
@click.pass_context
def command(ctx: click.Context, folder: Path, as_json: bool, quarantine: bool, inventory: tuple[str, ...]) -> None:
    """Read a run's logs, journals, torchrun's reports and error files, and flight recorder dumps: who is to blame?"""
    if quarantine and not inventory:
        raise click.UsageError("--quarantine: saw no inventory; wanted: one that has the nodes; do: add -i PATH")
    files = evidence.files(folder)
    ranks, torn = journals.read(files)
    dumps, wrong = flight.dumps(files)
    said = evidence.read(files, max((rank.world for rank in ranks.values()), default=0))
    if not ranks and not dumps and not said.files:
        message = f"{folder}: saw no journal (rank-*.jsonl), log, error.json or flight recorder dump of a run"
        click.echo(f"flightline: {clean(message)}; do: name the directory that --journal or --log-dir named", err=True)
        ctx.exit(EXIT_BROKEN)
    found = blames(ranks, dumps, said)
    if as_json:
        facts = {
            "schema": "flightline-blame/1",
            "ranks": len(ranks),
            "logs": said.files,
            "blames": [asdict(one) for one in found],
        }
        click.echo(json.dumps({**facts, "unreadable": wrong + torn}, indent=1))
    else:
        read = f"{len(ranks)} journals, {said.files} logs and {len(dumps)} flight recorder dumps"
        _show(found, wrong, read)
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


def _show(found: list[RankBlame], wrong: list[str], read: str) -> None:
    console = Console(markup=False, highlight=False, soft_wrap=True)
    for one in found:
        device = "" if one.device is None else f", GPU {one.device}"
        nameless = "not known who" if one.kind == UNKNOWN else "all, or not known who"
        nameless = "a node" if one.kind == SLOW and one.node else nameless
        who = nameless if one.rank is None else f"rank {one.rank}"
        where = f" ({one.node or 'node not known'}{device})" if one.rank is not None or one.node else ""
        step = f" at step {one.step}" if one.step is not None else ""
        console.print(Text(f"  {one.kind:<9} {clean(who + where)}{step}: {clean(one.why)} [{one.cause}]", "red"))
    for line in wrong:
        console.print(Text(f"  unread    {clean(line)}", "yellow"))
    named = sum(one.kind != UNKNOWN for one in found)
    verdict = f"{named} to blame" if named else "not known who is to blame" if found else "nobody to blame"
    console.print(f"{verdict}; read {read}")
