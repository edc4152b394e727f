"""flightline adopt: put gate, health program and watcher behind the cluster that is here, or take them out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from flightline_node.adopt import found as finding
from flightline_node.model import SettingsError
from flightline_node.watch.slurm import SlurmNode

from ..run import adoption, no_verdict, playbooks
from ..store.atomic import write_atomic
from . import options
from .preflight import command as preflight

OUT = "adopted.yml"
CLAIMED = "flightline: "


@click.command(
    cls=options.Command,
    example="flightline adopt --check\nflightline adopt --instance-type p5.48xlarge\nflightline adopt --remove",
    epilog="Exit status: that of the first verdict, 0 go, 1 no-go; 2 when it could not be done.",
)
@click.option("-i", "--inventory", multiple=True, metavar="PATH", help="How to reach hosts; which, without Slurm.")
@click.option("--instance-type", default="", metavar="TYPE", help="Of the nodes; each node's own word from EC2.")
@click.option("--out", default=OUT, show_default=True, type=click.Path(path_type=Path), help="The inventory to write.")
@click.option("--check", "checks", is_flag=True, help="Say what would be written where, and change nothing.")
@click.option("--remove", "removes", is_flag=True, help="Take out all that an adoption wrote.")
@click.option("--no-preflight", is_flag=True, help="End without a first verdict.")
@click.pass_context
def command(
    ctx: click.Context,
    inventory: tuple[str, ...],
    instance_type: str,
    out: Path,
    checks: bool,
    removes: bool,
    no_preflight: bool,
) -> None:
    """Put Flightline behind the Slurm cluster that is here, or behind plain hosts. See docs/adopt.md."""
    found = finding.look()
    if found.scheduler == finding.KUBERNETES:
        raise SettingsError("saw a node of Kubernetes, wanted Slurm or plain hosts; do: flightline kube")
    click.echo(f"found: {found.text}")
    for source in filter(no_verdict.missing, inventory):
        raise SettingsError(no_verdict.no_inventory(source))
    known = _nodes(found)
    with playbooks.workplace("adopt") as place:
        written = place / OUT if checks else out
        sources = _sources(found, known, inventory, instance_type, written)
        hosts = "gpu_nodes" if found.scheduler == finding.SLURM else "all"
        outcomes = adoption.play(adoption.Wanted(sources, hosts, removes, checks))
    _tell(outcomes, checks, removes)
    if checks:
        return
    if removes:
        _left(known)
        if out.is_file() and out.read_text(encoding="utf-8").startswith(adoption.WORD):
            out.unlink()
        return
    if found.scheduler == finding.SLURM:
        adoption.add_types(out, outcomes)
        _ask_who_controls(found)
    if not no_preflight:
        words = [word for source in sources for word in ("-i", source)]
        ctx.exit(preflight.main([*words, "--limit", hosts], "flightline preflight", standalone_mode=False) or 0)


def _nodes(found: finding.Found) -> list[SlurmNode]:
    known = adoption.nodes(found) if found.scheduler == finding.SLURM else []
    away = [one.name for one in known if one.states & adoption.AWAY]
    if away:
        click.echo(f"{len(away)} nodes have no machine now, as {away[0]}: scripts/flightline-start adopts such")
    return known


def _sources(
    found: finding.Found,
    known: Sequence[SlurmNode],
    inventory: tuple[str, ...],
    instance_type: str,
    out: Path,
) -> list[str]:
    """The inventories to take; of Slurm's own nodes one is written."""
    if found.scheduler != finding.SLURM:
        if not inventory:
            raise SettingsError("saw no Slurm here and no -i; wanted hosts to adopt; do: name an inventory with -i")
        return list(inventory)
    text = adoption.inventory_of(found, known, instance_type)
    write_atomic(out, text.encode())
    return [str(out), *inventory]


def _tell(outcomes: Sequence[adoption.Outcome], checks: bool, removes: bool) -> None:
    verb = ("would take out" if removes else "would write") if checks else "took out" if removes else "wrote"
    for one in outcomes:
        whose = " of slurm.conf" if one.part == "conf" else ""
        click.echo(f"{one.host}: {verb} {len(one.said['changed'])} files{whose}")
        for line in [*one.said["notes"], *one.said["changed"]]:
            click.echo(f"  {line}")


def _left(known: Sequence[SlurmNode]) -> None:
    """What we took out of service has no one left that returns it."""
    for one in known:
        if one.reason.startswith(CLAIMED):
            resumes = f"scontrol update NodeName={one.name} State=RESUME"
            click.echo(f"{one.name} stays out of service ({one.reason}); do: {resumes}")


def _ask_who_controls(found: finding.Found) -> None:
    if not found.controls:
        pcs = "set Prolog in the cluster's slurmCustomSettings (docs/adopt.md)"
        others = f"run flightline adopt on {', '.join(found.controllers) or 'the controller'} as well"
        click.echo(f"slurm.conf is not this machine's; do: {pcs if found.platform == finding.PCS else others}")
