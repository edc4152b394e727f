"""flightline runs: which preflight runs there are, and which training runs."""

from __future__ import annotations

from datetime import datetime, timezone

import click
from rich.text import Text

from flightline_node.model import Verdict

from ..cloud import training_runs
from ..cloud.training_runs import TrainingQuery
from ..console import Console
from ..report.text import clean, duration
from ..run.locate import open_store
from ..store.sqlite import Run, StoreError
from . import options

UNFINISHED = "unfinished"


@click.command(
    cls=options.Command,
    example="flightline runs --limit 5\nflightline runs --json | jq -r '.[] | select(.verdict == \"no-go\") | .run'\n"
    "flightline runs --training demo-training --dataset c4\n"
    "flightline runs --training demo-training --job llama-1 --json | jq '.[0].interruptions'",
    epilog="Exit status: 0 when there is a run, 2 when there is none or the store cannot be read.",
)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), help="Most runs to show.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--training", "table", default="", metavar="TABLE", help="Training runs instead, of a stack's table.")
@click.option("--job", default="", help="Training runs of this job.")
@click.option("--dataset", default="", help="Training runs on this data set.")
@click.option("--model", default="", help="Training runs of this model.")
@click.option("--days", default=30, show_default=True, type=click.IntRange(1, 3650), help="So far back, without these.")
@options.store
def command(limit: int, as_json: bool, table: str, store_path: str | None, days: int, **named: str) -> None:
    """List the runs of the store, newest first; with --training those of training, from the stack's table.

    The table's name is the stack's output training_table.
    """
    if table:
        _training(table, TrainingQuery(**named, days=days), limit, as_json)
        return
    if any(named.values()):
        wanted = ", ".join(f"--{name}" for name, value in named.items() if value)
        raise click.UsageError(f"saw {wanted}, which is of training runs; wanted: --training TABLE as well")
    with open_store(store_path) as store:
        found = [(run, len(store.run(run.run_id).hosts)) for run in store.runs(limit)]
    if not found:
        raise StoreError("saw no run in this store yet, wanted one; do: run `flightline preflight`")
    if as_json:
        options.print_json([_as_dict(run, nodes) for run, nodes in found])
        return
    shown = options.table("run", "verdict", "nodes", "level", "took", "inventory", whole=("run",))
    for run, nodes in found:
        verdict = run.verdict or UNFINISHED
        style = "green" if verdict == Verdict.GO else "bold red"
        facts = (f"{nodes:,}", run.level, duration(run.started_at, run.finished_at), run.inventory)
        shown.add_row(clean(run.run_id), Text(clean(verdict), style), *(Text(clean(fact)) for fact in facts))
    Console(markup=False, highlight=False).print(shown)


def _training(table: str, query: TrainingQuery, limit: int, as_json: bool) -> None:
    try:
        found = training_runs.find(table, query, datetime.now(timezone.utc).date())[:limit]
    except training_runs.TrainingTableError as error:
        raise StoreError(str(error)) from error
    if not found:
        raise StoreError(
            f"saw no training run in {table} that fits, wanted one; do: ask for more --days, or without names"
        )
    if as_json:
        options.print_json(found)
        return
    headings = ("run", "job", "status", "dataset", "nodes", "step", "saved", "stops", "USD")
    shown = options.table(*headings, whole=("run",))
    for one in found:
        style = {"finished": "green", "failed": "bold red", "refused": "bold red"}.get(one["status"], "")
        saved = one.get("checkpoints") or [{}]
        usd = one.get("cost_usd")
        stops, spent = len(one.get("interruptions") or ()), None if usd is None else f"{usd:,.2f}"
        facts = (one.get("dataset"), one.get("nodes"), one.get("step"), saved[-1].get("step"), stops, spent)
        cells = ("" if fact is None else str(fact) for fact in facts)
        words = (one["run"], one["job"])
        shown.add_row(*map(clean, words), Text(clean(one["status"]), style), *(Text(clean(cell)) for cell in cells))
    Console(markup=False, highlight=False).print(shown)


def _as_dict(run: Run, nodes: int) -> dict[str, object]:
    keys = ("started_at", "finished_at", "level", "inventory")
    return {
        "run": run.run_id,
        "verdict": run.verdict or UNFINISHED,
        "nodes": nodes,
        **{key: getattr(run, key) for key in keys},
    }
