"""flightline collect: the probes of this machine, kept as a bundle."""

from __future__ import annotations

from pathlib import Path

import click

from flightline_node.ask.runner import Node, ProbeResult
from flightline_node.know.expected import resolve
from flightline_node.model import LEVELS
from flightline_node.node import Identity, collect
from flightline_node.settings import build

from . import options


@click.command(
    cls=options.Command,
    example="flightline collect --out ./here --level quick\nflightline judge ./here --instance-type p5.48xlarge",
    epilog="Exit status: 0 when the bundle was written (probes may have failed in it), 2 when it was not.",
)
@click.option(
    "--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="Directory for the bundle."
)
@options.level
@click.option("--instance-type", metavar="T", default="", help="Noted in the manifest, so that judge knows it.")
@click.option("--when-busy", is_flag=True, help="Run the active tests although the node is in use.")
def command(out: Path, level: str | None, instance_type: str, when_busy: bool) -> None:
    """Run the probes of a level on this machine and keep their raw outputs."""
    if instance_type:
        resolve(instance_type)
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise click.UsageError(
            f"saw that {out} is not empty, wanted a new directory: outputs of two times must not mix in one bundle"
        )
    done: list[ProbeResult] = []

    def show(result: ProbeResult) -> None:
        done.append(result)
        trouble = result.note or (f"exit status {result.rc}" if result.rc else "")
        click.echo(f"{result.id:<18} {result.seconds:6.2f} s  {trouble or 'ok'}", err=True)

    site = build(options={"active_when_busy": when_busy})
    collect(Node(), level or LEVELS[0], out.resolve(), Identity(), instance_type, show, site)
    good = sum(result.rc == 0 for result in done)
    click.echo(f"{out}: {len(done)} probes, {good} ended well")
