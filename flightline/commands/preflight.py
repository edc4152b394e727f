"""flightline preflight: the playbook with live progress, and the verdict last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..conclude import EXIT_BROKEN, show
from ..console import Console
from ..preflight import CannotRunError, Request, run
from ..progress import watching
from . import options


@click.command(
    cls=options.Command,
    example="flightline preflight -i inventory/aws_ec2.yml --level standard --limit 'p5_*'",
    epilog="Ctrl-C ends the run; what was measured until then is judged. "
    "Exit status: 0 go, 1 no-go, 2 the preflight itself could not run.",
)
@click.option("-i", "--inventory", multiple=True, metavar="PATH", help="Inventory; default the embedded demo fleet.")
@options.level
@click.option("--limit", default="", metavar="PATTERN", help="Only these hosts of the inventory.")
@click.option("--check", "select", metavar="ID", multiple=True, help="Only this check or tag; repeatable.")
@click.option("--skip", metavar="ID", multiple=True, help="Leave out this check or tag; repeatable.")
@click.option("--forks", type=click.IntRange(1), metavar="N", help="Hosts at the same time; default as in ansible.cfg.")
@click.option(
    "--json",
    "json_path",
    type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Write the JSON report here as well (- for standard output).",
)
@click.option("--report-dir", type=click.Path(file_okay=False, path_type=Path), help="Directory for the report.")
@options.store
@options.publish
@click.pass_context
def command(
    ctx: click.Context,
    inventory: tuple[str, ...],
    level: str | None,
    limit: str,
    select: tuple[str, ...],
    skip: tuple[str, ...],
    forks: int | None,
    json_path: Path | None,
    report_dir: Path | None,
    store_path: str | None,
    publish_pairs: tuple[str, ...],
) -> None:
    """Judge every host of an inventory: go or no-go, with a reason for every node."""
    extra: dict[str, Any] = {
        name: value
        for name, value in (
            ("flightline_level", level),
            ("flightline_checks", list(select)),
            ("flightline_skip", list(skip)),
            ("flightline_publish", options.publishing(publish_pairs) if publish_pairs else None),
        )
        if value
    }
    path = options.store_file(store_path)
    request = Request(inventory, limit, extra, path, report_dir, forks or 0, json_path)
    to_stdout = json_path == Path("-")
    console = Console(stderr=to_stdout)
    try:
        with watching(console) as watcher:
            outcome = run(request, watcher)
    except CannotRunError as error:
        click.echo(f"flightline: {error}", err=True)
        ctx.exit(EXIT_BROKEN)
    show(outcome, console)
    ctx.exit(outcome.exit_status)
