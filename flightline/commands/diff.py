"""flightline diff: what changed between two runs."""

from __future__ import annotations

import click
from rich.text import Text

from ..console import Console
from ..fleet.judgement import judge_run
from ..fleet.lookup import Change, Difference, classes, difference, find
from ..report.sheet import STYLES
from ..report.text import clean, count, host_ranges, short_list
from ..run.locate import open_store
from . import completing, options

MOST_LINES = 40


@click.command(
    cls=options.Command,
    example="flightline runs --limit 2\nflightline diff 20261121T030000Z-a1b2c3 latest\n"
    "flightline diff 20261121T030000Z-a1b2c3 latest --json | jq '.new[].host'",
    epilog="Exit status: 0 nothing is new, 1 something is new, vanished or was not judged again, 2 a run is not there.",
)
@click.argument("before", metavar="RUN", shell_complete=completing.run_ids)
@click.argument("after", metavar="RUN", shell_complete=completing.run_ids)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@options.store
@click.pass_context
def command(ctx: click.Context, before: str, after: str, as_json: bool, store_path: str | None) -> None:
    """Compare the root causes of two runs: new, gone, still there; and nodes that appeared or vanished.

    What an earlier run found is gone only when the later one measured it again and found nothing.
    """
    with open_store(store_path) as store:
        first, second = (judge_run(store, find(store, run).run_id) for run in (before, after))
    found = difference(first, second)
    if as_json:
        ids = {"before": first.run.id, "after": second.run.id, "appeared": found.appeared, "vanished": found.vanished}
        changes = {name: [vars(change) for change in some] for name, _, some in classes(found)}
        options.print_json({**ids, **changes})
    else:
        console = Console(highlight=False)
        console.print(
            Text(f"from {clean(first.run.id)} ({first.verdict}) to {clean(second.run.id)} ({second.verdict})")
        )
        _print(found, console)
    ctx.exit(1 if found.is_worse else 0)


def _print(found: Difference, console: Console) -> None:
    for name, hosts in (("appeared", found.appeared), ("vanished", found.vanished)):
        if hosts:
            console.print(Text(f"{count(len(hosts), 'node')} {name}: {short_list(host_ranges(hosts))}", "bold"))
    for _, title, changes in classes(found):
        if changes:
            console.print(Text(f"\n{title}: {len(changes):,}", "bold"))
            for change in changes[:MOST_LINES]:
                console.print(_line(change), soft_wrap=True)
            if len(changes) > MOST_LINES:
                console.print(Text(f"  +{len(changes) - MOST_LINES:,} more, all with --json", "dim"))
    if not any(changes for _, _, changes in classes(found)):
        console.print(Text("no trouble in either run"))


def _line(change: Change) -> Text:
    part = "" if not change.device or change.device in change.message else f"{clean(change.device)}: "
    style = next((style for status, style in STYLES.items() if status == change.status), "")
    return Text.assemble(
        f"  {clean(change.host)}  ",
        (clean(change.status), style),
        f" {clean(change.check)} {clean(change.remedy)}: {part}{clean(change.message)}",
    )
