"""flightline report: a run again, from the store."""

from __future__ import annotations

from pathlib import Path

import click

from flightline_node.model import Verdict

from ..console import Console, reader_may_leave
from ..fleet.judgement import as_judged, judge_run
from ..fleet.lookup import find
from ..fleet.proofs import ages
from ..report import existing
from ..report.terminal import print_summary
from ..run import detached
from ..run.conclude import FORMATS, look_back, own_report_dir, write_one
from ..run.locate import open_store
from ..store.sqlite import SqliteStore, Store, default_path
from . import completing, options


def _path(flag: str) -> click.Path:
    return click.Path(dir_okay=False, path_type=Path, allow_dash=True)


@click.command(
    cls=options.Command,
    example="flightline report latest --html fleet.html",
    epilog="Exit status: 0 go, 1 no-go, 2 the run or the store is not there.",
)
@click.argument("run", shell_complete=completing.run_ids)
@click.option("--html", type=_path("html"), metavar="PATH", help="Write the HTML report here (- for standard output).")
@click.option("--json", "json_", type=_path("json"), metavar="PATH", help="Write the JSON report here.")
@click.option("--junit", type=_path("junit"), metavar="PATH", help="Write the JUnit report here.")
@options.store
@click.pass_context
def command(
    ctx: click.Context, run: str, html: Path | None, json_: Path | None, junit: Path | None, store_path: str | None
) -> None:
    """Show the verdict of RUN (a run id, or latest), judged from the stored results.

    A run that was killed is judged over what it had measured; hosts without a result are UNKNOWN.
    """
    wanted = {kind: path for kind, path in zip(FORMATS, (json_, junit, html), strict=True) if path}
    with open_store(store_path) as store:
        run_id = find(store, run).run_id
        if isinstance(store, SqliteStore):
            for line in detached.fetch(store, run_id):
                click.echo(f"flightline: {line}", err=True)
        report = judge_run(store, run_id)
        if isinstance(store, SqliteStore):
            report.incidents = store.incidents()
            report.proofs = ages(store, report)
        for kind, path in wanted.items():
            with reader_may_leave():
                write_one(kind, report, lambda: as_judged(store, report.run.id), path)
    if Path("-") not in wanted.values():
        links = {**_written(store, report.run.id), **wanted}
        print_summary(report, Console(), links, look_back(store_path or default_path()))
    ctx.exit(0 if report.verdict is Verdict.GO else 1)


def _written(store: Store, run_id: str) -> dict[str, Path]:
    """The report's files that the run left beside its store."""
    return existing(own_report_dir(store.path, run_id)) if isinstance(store, SqliteStore) else {}
