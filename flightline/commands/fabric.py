"""flightline fabric: a collective over all nodes, and when it falls short, who is to blame."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.text import Text

from flightline_node.model import BLOCKING, Status
from flightline_node.read.parsers.nccl_files import COLLECTIVES

from ..console import EXIT_BROKEN, EXIT_GO, EXIT_NO_GO, Console
from ..fabric.criterion import LEAST_SHARE
from ..fabric.settings import EVERY, LAUNCHERS, TESTS, program_of, wanted_of
from ..fleet.baseline import BaselineError
from ..fleet.together import HOST
from ..report.copies import is_plain, slurm_list
from ..report.text import clean
from ..run import inventory as inventories
from ..run import playbooks
from ..store.sqlite import default_path, new_run_id, now_stamp
from . import options


@click.command(
    cls=options.Command,
    example="flightline fabric -i inventory/aws_ec2.yml --limit 'p5_*' --need 60 --hostfile hosts.mpi\n"
    "flightline fabric -i inventory/aws_ec2.yml --collective alltoall --launcher srun",
    epilog="Ctrl-C ends the test on every node. Exit status: 0 go, or --need is met; 1 no-go; 2 it could not run.",
)
@click.option("-i", "--inventory", multiple=True, metavar="PATH", help="Inventory; default FLIGHTLINE_INVENTORY.")
@options.limit
@click.option(
    "--collective",
    "collectives",
    type=options.Choice(COLLECTIVES),
    multiple=True,
    default=EVERY,
    metavar="NAME",
    help=f"Repeatable; default {', '.join(EVERY)}.",
)
@click.option(
    "--program",
    metavar="PATH ARGS",
    help=f"Test program; {{collective}} is its name; default {TESTS}/{{collective}}_perf, 8 bytes to 8 GB or more.",
)
@click.option("--ranks", type=click.IntRange(1, 64), metavar="N", help="Ranks on each node; default its GPUs.")
@click.option("--launcher", type=options.Choice(LAUNCHERS), default="mpirun", show_default=True, metavar="NAME")
@click.option(
    "--launcher-option", "launcher_options", multiple=True, metavar="ARG", help="For the launcher; repeatable."
)
@click.option("--env", "pairs", multiple=True, metavar="K=V", help="Environment of every rank; repeatable.")
@click.option(
    "--deadline",
    "deadline_s",
    type=click.IntRange(5, 7200),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="Of each test: then every rank on every node is ended.",
)
@click.option(
    "--least-share",
    type=click.FloatRange(0.1, 0.99),
    default=LEAST_SHARE,
    show_default=True,
    metavar="SHARE",
    help="A pair below this share of what the better pairs reach is slow.",
)
@click.option(
    "--pairs", "pairs_always", is_flag=True, help="Test the pairs even when all nodes together are fast enough."
)
@click.option("--ec2", "ask_ec2", is_flag=True, help="Ask EC2 where the instances stand (DescribeInstanceTopology).")
@click.option("--storage", metavar="PATH", help="Then all nodes write and read the file system mounted there at once.")
@click.option(
    "--storage-mb-s", type=click.FloatRange(1), metavar="N", help="Its throughput; less than 80 % of it is no-go."
)
@click.option("--need", type=click.IntRange(2), metavar="N", help="Go when this many nodes are healthy.")
@click.option(
    "--hostfile", type=click.Path(dir_okay=False, path_type=Path), help="Write the healthy nodes as an MPI hostfile."
)
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path), help="Write the result as JSON.")
@click.pass_context
def command(ctx: click.Context, /, inventory: tuple[str, ...], hostfile: Path | None, **given: Any) -> None:
    """Run a collective over all nodes; when it falls short, name the node or path by rounds of parallel pairs."""
    from ..fabric import ansible as edge
    from ..fabric.drive import drive

    console = Console(markup=False, highlight=False, soft_wrap=True)
    asked, least_share = _asked(ctx, inventory, given)
    run_id, started_at = new_run_id(), now_stamp()
    place = default_path().parent / "fabric" / run_id
    try:
        fleet = edge.with_baseline(edge.fleet_of(asked), default_path())
        result = drive(fleet, edge.Rounds(asked, fleet, run_id), place, lambda text: console.print(clean(text)),
                       given["pairs_always"], least_share)  # fmt: skip
        shared = _shared(asked, fleet, run_id, lambda text: console.print(clean(text)))
    except (edge.FabricError, BaselineError) as error:
        click.echo(f"flightline: {clean(error)}", err=True)
        ctx.exit(EXIT_BROKEN)
    slow = {one["device"].get(HOST, "") for one in shared if Status(one["status"]) in BLOCKING}
    healthy = [node for node in result.healthy if node not in slow]
    met = (result.go and not slow) if given["need"] is None else len(healthy) >= given["need"] and "" not in slow
    place.mkdir(parents=True, exist_ok=True)
    for path in filter(None, (place / "result.json", given["json_path"])):
        path.write_text(
            json.dumps(_as_dict(run_id, started_at, result, met, shared, healthy), indent=1) + "\n", encoding="utf-8"
        )
    if hostfile:
        lines = [f"{fleet.addresses[node]} slots={fleet.ranks}\n" for node in healthy]
        hostfile.write_text("".join(lines), encoding="utf-8")
    for one in shared:
        if one["status"] != str(Status.PASS):
            where = clean(one["device"].get(HOST, "")) or "all nodes"
            console.print(Text(f"  storage   {where}: {one['status']} {clean(one['message'])}", "red"))
    _show(console, result, met, given["need"], place, healthy)
    ctx.exit(EXIT_GO if met else EXIT_NO_GO)


AS_GIVEN = ("launcher", "deadline_s", "ask_ec2", "ranks", "storage", "storage_mb_s")
"""Options that mean what the inventory's keys mean."""


def _asked(ctx: click.Context, inventory: tuple[str, ...], given: dict[str, Any]) -> tuple[Any, float]:
    """The test as the inventory wants it (flightline_fabric), and above that what the command line says."""
    sources = playbooks.sources(inventory)
    wanted = wanted_of(next(iter(inventories.hosts(sources, given["limit"]).values()), {}))
    said = {
        name: value for name, value in given.items() if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
    }
    own: dict[str, Any] = {name: said[name] for name in AS_GIVEN if name in said}
    if "collectives" in said:
        own["collectives"] = tuple(dict.fromkeys(said["collectives"]))
    if "program" in said:
        own["program"] = tuple(shlex.split(said["program"])) or program_of("")
    if "launcher_options" in said:
        own["options"] = tuple(said["launcher_options"])
    environment = {**wanted.asked.environment, **options.pairs(given["pairs"], "--env")}
    asked = replace(wanted.asked, inventory=sources, limit=given["limit"], environment=environment, **own)
    return asked, said.get("least_share", wanted.least_share)


def _shared(asked: Any, fleet: Any, run_id: str, say: Any) -> list[Any]:
    """Findings of the shared file system; none where none is named."""
    from ..fabric import storage
    from ..fabric.ansible import Rounds

    if not asked.storage:
        return []
    tries = storage.test(fleet.ring, Rounds(asked, fleet, run_id).storage, say)
    return storage.findings(asked.storage, fleet.ring, tries, asked.storage_mb_s)


def _as_dict(
    run_id: str, started_at: str, result: Any, met: bool, shared: list[Any], healthy: list[str]
) -> dict[str, Any]:
    return {
        "schema": "flightline-fabric/3",
        "run": run_id,
        "started_at": started_at,
        "verdict": "go" if met else "no-go",
        "instance_type": result.fleet.expected.instance_type,
        "together": {name: vars(log) for name, log in result.together.items()},
        "collective": result.collective,
        "rounds": [
            [_pair(measure, test) for measure, test in zip(played, tests, strict=True)]
            for played, tests in zip(result.measured, result.rounds, strict=True)
        ],
        "faults": [vars(blame) for blame in result.found],
        "left_out": result.left_out,
        "healthy": healthy,
        "storage": shared,
        "strays": result.strays,
        "outside": dict(result.fleet.outside),
    }


def _pair(measure: Any, test: Any) -> dict[str, Any]:
    """One test of a pair. gb_s: of the slower direction, None where it gave no figure."""
    figure = min(measure.sent.values(), default=None)
    return {"nodes": list(test.pair), "slow": sorted(test.slow), "why": test.why, "gb_s": figure}


def _show(console: Console, result: Any, met: bool, need: int | None, place: Path, passed: list[str]) -> None:
    for host, why in result.left_out.items():
        console.print(Text(f"  left out  {clean(host)}: {clean(why)}", "red"))
    for blame in result.found:
        names = ", ".join(map(clean, blame.nodes)) or "the whole fabric"
        side = f" (sending of {clean(blame.sending)})" if blame.sending else ""
        console.print(Text(f"  {blame.kind:<12} {names}{side}: {clean(blame.why)}", "red"))
    for host, why in result.fleet.outside.items():
        console.print(Text(f"  apart     {clean(host)}: {clean(why)}", "yellow"))
    for host, names in result.strays.items():
        console.print(Text(f"  stray     {clean(host)}: {clean(', '.join(names))} would not end", "yellow"))
    if result.trouble and not result.found:
        console.print(Text(f"  together  {clean(result.trouble)}; each pair alone passed", "red"))
    wanted = f", wanted {need}" if need else ""
    healthy = [node for node in passed if is_plain(node)]
    word = Text("GO" if met else "NO-GO", "bold green" if met else "bold red")
    console.print(word, f"{len(passed)} of {len(result.fleet.ring)} nodes healthy{wanted}")
    if healthy and not (result.go and met):
        console.print(f"  healthy   {slurm_list(healthy)}")
    console.print(f"  logs      {place}")
