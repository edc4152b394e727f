"""flightline runs: which runs there are."""

from __future__ import annotations

import json

import click
from rich.table import Table
from rich.text import Text

from flightline_node.model import Verdict

from ..console import Console
from ..report.text import clean, duration
from ..run.locate import open_store
from ..store.sqlite import Run, StoreError
from . import options

UNFINISHED = "unfinished"


@click.command(
    cls=options.Command,
    example="flightline runs --limit 5\nflightline runs --json | jq -r '.[] | select(.verdict == \"no-go\") | .run'",
    epilog="Exit status: 0 when there is a run, 2 when there is none or the store cannot be read.",
)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), help="Most runs to show.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@options.store
def command(limit: int, as_json: bool, store_path: str | None) -> None:
    """List the runs of the store, newest first."""
    with open_store(store_path) as store:
        found = [(run, len(store.run(run.run_id).hosts)) for run in store.runs(limit)]
    if not found:
        raise StoreError("saw no run in this store yet, wanted one; do: run `flightline preflight`")
    if as_json:
        click.echo(json.dumps([_as_dict(run, nodes) for run, nodes in found], indent=1))
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("run", "verdict", "nodes", "level", "took", "inventory"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "run")
    for run, nodes in found:
        verdict = run.verdict or UNFINISHED
        style = "green" if verdict == Verdict.GO else "bold red"
        facts = (f"{nodes:,}", run.level, duration(run.started_at, run.finished_at), run.inventory)
        table.add_row(clean(run.run_id), Text(clean(verdict), style), *(Text(clean(fact)) for fact in facts))
    Console(markup=False, highlight=False).print(table)


def _as_dict(run: Run, nodes: int) -> dict[str, object]:
    keys = ("started_at", "finished_at", "level", "inventory")
    return {
        "run": run.run_id,
        "verdict": run.verdict or UNFINISHED,
        "nodes": nodes,
        **{key: getattr(run, key) for key in keys},
    }
