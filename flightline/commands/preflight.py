"""flightline preflight: the playbook with live progress, and the verdict last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from flightline_node.bounds import MAX_DEADLINE_S

from ..conclude import EXIT_BROKEN, show
from ..console import Console
from ..fleet import judge_run
from ..locate import open_store
from ..preflight import CannotRunError, Request, run
from ..progress import watching
from ..report.copies import is_plain
from ..runs import failed_hosts, find
from . import options


@click.command(
    cls=options.Command,
    example="flightline preflight -i inventory/aws_ec2.yml --level standard --limit 'p5_*'\n"
    "flightline preflight -i inventory/aws_ec2.yml --only-failed-of latest",
    epilog="Ctrl-C ends the run; what was measured until then is judged. "
    "Exit status: 0 go, 1 no-go, 2 the preflight itself could not run.",
)
@click.option("-i", "--inventory", multiple=True, metavar="PATH", help="Inventory; default the embedded demo fleet.")
@options.level
@click.option("--limit", default="", metavar="PATTERN", help="Only these hosts of the inventory.")
@click.option(
    "--only-failed-of", metavar="RUN", help="Only the hosts that were no-go in this run (an id, or latest), again."
)
@click.option("--check", "select", metavar="ID", multiple=True, help="Only this check or tag; repeatable.")
@click.option("--skip", metavar="ID", multiple=True, help="Leave out this check or tag; repeatable.")
@click.option("--forks", type=click.IntRange(1), metavar="N", help="Hosts at the same time; default as in ansible.cfg.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.IntRange(1, MAX_DEADLINE_S),
    metavar="SECONDS",
    help="Give a host up that has not answered by then; default quick 180, standard 6000, deep 18000.",
)
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
    only_failed_of: str | None,
    select: tuple[str, ...],
    skip: tuple[str, ...],
    forks: int | None,
    timeout_s: int | None,
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
    if only_failed_of and limit:
        raise click.UsageError("--limit and --only-failed-of: give one of them")
    to_stdout = json_path == Path("-")
    console = Console(stderr=to_stdout)
    try:
        with _failed_of(only_failed_of, path, inventory) as (sources, failed), watching(console) as watcher:
            asked = (sources, failed or limit, extra, path, report_dir)
            outcome = run(Request(*asked, forks or 0, timeout_s or 0, json_path), watcher)
    except CannotRunError as error:
        click.echo(f"flightline: {error}", err=True)
        ctx.exit(EXIT_BROKEN)
    show(outcome, console)
    ctx.exit(outcome.exit_status)


@contextmanager
def _failed_of(run: str | None, path: Path, inventory: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The inventory and the limit (a file of hosts: a command line has no room for thousands) to judge again.

    Without an inventory the run's own, where it is still there.
    """
    if run is None:
        yield inventory, ""
        return
    with open_store(path) as store:
        report = judge_run(store, find(store, run).run_id)
    hosts, absent = failed_hosts(report)
    if absent:
        click.echo(f"flightline: not in the inventory, so not judged again: {', '.join(absent)}", err=True)
    strange = [host for host in hosts if not is_plain(host)]
    if strange:
        raise CannotRunError(f"{strange[0]!a}: no name that --limit could take; rename it in the inventory")
    if not hosts:
        raise CannotRunError(f"run {report.run.id}: no node of it was no-go, so there is nothing to judge again")
    recorded = tuple(report.run.inventory.split(", "))
    own = recorded if all(Path(source).exists() for source in recorded) else ()
    with TemporaryDirectory(prefix="flightline-limit-") as directory:
        listed = Path(directory) / "hosts"
        listed.write_text("".join(f"{host}\n" for host in hosts), encoding="utf-8")
        yield inventory or own, f"@{listed}"
