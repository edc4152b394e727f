"""flightline publish: send what is waiting."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from flightline_node.model import SettingsError

from ..fleet.lookup import find
from ..store.sqlite import SqliteStore
from . import completing, options

NOTHING = "nothing waits to be published"


@click.command(
    cls=options.Command,
    example="flightline publish\n"
    "flightline publish latest --publish table=flightline-results --publish slack=env:SLACK_WEBHOOK",
    epilog="Exit status: 0 everything is sent, 1 something still waits, 2 the queue or the store cannot be used.",
)
@click.argument("run", required=False, shell_complete=completing.run_ids)
@click.option("--list", "only_list", is_flag=True, help="Show what waits, and why; send nothing.")
@options.publish
@options.store
@click.pass_context
def command(
    ctx: click.Context, run: str | None, only_list: bool, publish_pairs: tuple[str, ...], store_path: str | None
) -> None:
    """Send the runs that wait to be published, in order; with RUN, queue that run first.

    A preflight publishes by itself; this goes on where it was cut off (network, credentials, a kill).
    """
    from ..cloud import outbox, publish

    path = options.store_file(store_path)
    if run:
        _queue(path, run, publish_pairs)
    if only_list:
        with outbox.Outbox(path) as queue:
            lines = [f"{job.run_id}  {job.stage}  {job.trouble or 'not tried yet'}" for job in queue.open_jobs()]
        click.echo("\n".join(lines) or NOTHING)
        return
    outcome = publish.drain(path)
    for note in outcome.notes:
        click.echo(note)
    for trouble in outcome.troubles:
        click.echo(f"warning: {trouble}", err=True)
    if not outcome.notes and not outcome.troubles:
        click.echo(NOTHING)
    ctx.exit(1 if outcome.troubles else 0)


def _queue(path: Path, run: str, publish_pairs: Iterable[str]) -> None:
    from ..cloud import outbox, publish_settings

    wanted = publish_settings.publish(options.publishing(publish_pairs))
    if wanted is None:
        raise SettingsError(
            "publish: saw nowhere to publish to, wanted a place; do: give --publish table=... or set FLIGHTLINE_PUBLISH"
        )
    with SqliteStore(path, create=False) as store:
        run_id = find(store, run).run_id
    with outbox.Outbox(path) as queue:
        queue.add(run_id, wanted.target, wanted.to_dict())
