"""flightline demo: an inventory of simulated nodes."""

from __future__ import annotations

from pathlib import Path

import click

from flightline_node.know.expected import resolve
from flightline_node.model import SettingsError
from flightline_node.suggest import unknown

from .. import demo
from . import options


@click.command(
    cls=options.Command,
    example="flightline demo --out ./fleet --nodes 16 --fault gpu_missing=gpu-03\nflightline preflight -i ./fleet",
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Directory for the inventory.")
@click.option("--nodes", default=8, show_default=True, type=click.IntRange(1, 100_000), help="Number of nodes.")
@click.option("--type", "instance_type", default="p5.48xlarge", show_default=True, metavar="T", help="Instance type.")
@click.option("--fault", metavar="NAME=NODE", multiple=True, help="Break a node; repeatable.")
@click.option("--faults", is_flag=True, help="List the faults and what each comes to.")
def command(out: Path | None, nodes: int, instance_type: str, fault: tuple[str, ...], faults: bool) -> None:
    """Write an inventory of simulated nodes: no AWS account, no GPU, no root.

    It proves the plumbing (Ansible, run store, report), not the detection of real faults.
    """
    if faults:
        width = max(map(len, demo.FAULTS))
        told = max(len(item.comes_to) for item in demo.FAULTS.values())
        for name, item in demo.FAULTS.items():
            click.echo(f"{name:<{width}}  {item.comes_to:<{told}}  {item.what}")
        return
    if out is None:
        raise click.UsageError("saw no --out; wanted --out DIR, or --faults to list the faults")
    resolve(instance_type)
    wanted = [(name.strip(), node.strip()) for name, node in (item.partition("=")[::2] for item in fault)]
    _check(fault, wanted)
    path = demo.write_inventory(out, nodes, instance_type, wanted)
    click.echo(f"{path}: {nodes} simulated {instance_type}; judge them with: flightline preflight -i {out}")


def _check(given: tuple[str, ...], wanted: list[tuple[str, str]]) -> None:
    for text, (name, node) in zip(given, wanted, strict=True):
        if not node:
            raise SettingsError(f"saw --fault {text!r}, wanted NAME=NODE")
        if name not in demo.FAULTS:
            raise SettingsError(unknown("fault", name, demo.FAULTS))
