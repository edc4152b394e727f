"""flightline watch: the node's watcher, started here. On a cluster's nodes the role flightline_watch runs it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from flightline_node.watch import program

from . import options


@click.command(
    cls=options.Command,
    example="flightline watch --status\nflightline watch --release nightly-2026-11-22",
    epilog="Exit status: 0 done, 1 in quarantine or refused, 2 when it could not run.",
)
@click.option("--status", is_flag=True, help="Print this machine's quarantine marker.")
@click.option("--release", metavar="RUN", help="End the quarantine: this preflight has proven the remedy.")
@click.option("--judged-at", metavar="TIME", help="With --release: when that preflight looked (RFC 3339).")
@click.option("--settings", type=click.Path(path_type=Path), help="The node's settings; /etc/flightline/node.json.")
@click.option("--watch-settings", type=click.Path(path_type=Path), help="The watcher's; /etc/flightline/watch.json.")
def command(
    status: bool, release: str | None, judged_at: str | None, settings: Path | None, watch_settings: Path | None
) -> None:
    """Watch this machine as a node: take it out of service when a fault shows. Ends with control-C."""
    given = {
        "--release": release,
        "--judged-at": judged_at,
        "--settings": settings,
        "--watch-settings": watch_settings,
    }
    words = ["--status"] if status else []
    words += [word for name, value in given.items() if value is not None for word in (name, str(value))]
    sys.exit(program.main(words))
