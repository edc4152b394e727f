"""flightline train: what torchrun starts, watched and started again. The role's jobs are flightline-train's."""

from __future__ import annotations

import sys

import click

from flightline_node.train import program

from . import options


@click.command(
    cls=options.Command,
    context_settings={"ignore_unknown_options": True},
    example="flightline train -- --nproc-per-node 8 train.py --lr 1e-4\n"
    "flightline train --job llama-1 -- --nnodes 2 --rdzv-backend c10d --rdzv-endpoint gpu-01:29400 -m torchtitan.train",
    epilog="Exit status: 0 done, 75 told to end, start it again, 77 the node is refused, 70 the program's own fault, 1 "
    "failed too often, 2 settings that cannot work.",
)
@click.option("--job", default="", metavar="NAME", help="Its name; else the program's.")
@click.option("--pause-s", type=float, help="Seconds between two starts; 10.")
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- TORCHRUN'S ARGUMENTS")
def command(job: str, pause_s: float | None, words: tuple[str, ...]) -> None:
    """Run what torchrun would: a hang is told of, each end judged, its evidence kept, and the run started again."""
    own = [*([job] if job else []), *(["--pause-s", str(pause_s)] if pause_s is not None else [])]
    sys.exit(program.main([*own, "--", *words]))
