"""flightline runs: which preflight runs there are, and which training runs."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import click
from rich.text import Text

from flightline_node.model import Verdict

from ..cloud import training_runs
from ..cloud.training_runs import TrainingQuery
from ..console import Console
from ..fleet.proofs import ACTIVE, DAYS, NodeProof, age_h, proofs
from ..healing.plan.seen import runs_alike
from ..healing.steps.slurm import expand
from ..report.text import clean, duration
from ..run.locate import open_store
from ..store.sqlite import LATEST, Run, SqliteStore, Store, StoreError, now_stamp
from . import options

UNFINISHED = "unfinished"
METRIC = "flightline_proof_age_hours"


@click.command(
    cls=options.Command,
    example="flightline runs --limit 5\nflightline runs --json | jq -r '.[] | select(.verdict == \"no-go\") | .run'\n"
    "flightline runs --training demo-training --dataset c4\n"
    "flightline runs --training demo-training --job llama-1 --json | jq '.[0].interruptions'\n"
    'flightline runs --age --max-age 24 --nodes "$SLURM_JOB_NODELIST"',
    epilog="Exit status: 0 when there is a run, 1 when a proof is older than --max-age, 2 when there is no run or the "
    "store cannot be read.",
)
@click.option("--age", "by_age", is_flag=True, help="How old each node's proof is instead, by active level.")
@click.option("--max-age", type=click.FloatRange(0), metavar="HOURS", help="Exit 1 for an older proof, or for none.")
@click.option("--level", type=options.Choice(ACTIVE), default=ACTIVE[0], help="Of that level.", show_default=True)
@click.option("--nodes", default="", metavar="LIST", help="Only these, as Slurm writes them: gpu-[01-08],gpu-12.")
@click.option("--prometheus", is_flag=True, help=f"Print {METRIC}, for node_exporter's textfile collector.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), help="Most runs to show.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--training", "table", default="", metavar="TABLE", help="Training runs instead, of a stack's table.")
@click.option("--job", default="", help="Training runs of this job.")
@click.option("--dataset", default="", help="Training runs on this data set.")
@click.option("--model", default="", help="Training runs of this model.")
@click.option("--days", default=30, show_default=True, type=click.IntRange(1, 3650), help="So far back, without these.")
@options.store
@click.pass_context
def command(
    ctx: click.Context,
    /,
    limit: int,
    as_json: bool,
    table: str,
    store_path: str | None,
    days: int,
    by_age: bool,
    max_age: float | None,
    level: str,
    nodes: str,
    prometheus: bool,
    **named: str,
) -> None:
    """List the runs of the store, newest first; with --training those of training, from the stack's table.

    The table's name is the stack's output training_table.
    """
    if table:
        _training(table, TrainingQuery(**named, days=days), limit, as_json)
        return
    if any(named.values()):
        wanted = ", ".join(f"--{name}" for name, value in named.items() if value)
        raise click.UsageError(f"saw {wanted}, which is of training runs; wanted: --training TABLE as well")
    if by_age or max_age is not None or prometheus:
        ctx.exit(_age(store_path, expand(nodes), level, max_age, as_json, prometheus))
    with open_store(store_path) as store:
        found = [(run, len(store.run(run.run_id).hosts)) for run in store.runs(limit)]
    if not found:
        raise StoreError("saw no run in this store yet, wanted one; do: run `flightline preflight`")
    if as_json:
        options.print_json([_as_dict(run, many) for run, many in found])
        return
    shown = options.table("run", "verdict", "nodes", "level", "took", "inventory", whole=("run",))
    for run, many in found:
        verdict = run.verdict or UNFINISHED
        style = "green" if verdict == Verdict.GO else "bold red"
        facts = (f"{many:,}", run.level, duration(run.started_at, run.finished_at), run.inventory)
        shown.add_row(clean(run.run_id), Text(clean(verdict), style), *(Text(clean(fact)) for fact in facts))
    Console(markup=False, highlight=False).print(shown)


def _age(
    store_path: str | None, nodes: list[str], level: str, max_age: float | None, as_json: bool, prometheus: bool
) -> int:
    """Show the age of each node's proof; 1 where one is too old for who asks."""
    now = now_stamp()
    with open_store(store_path) as store:
        if not isinstance(store, SqliteStore):
            raise StoreError(f"saw the store {store_path} in AWS, wanted the file that proofs go to; do: --store FILE")
        known = proofs(store, now)
        own = {host: known.get(host, NodeProof()) for host in nodes or _fleet(store)}
    ages = {host: {name: age_h(one, name, now) for name in ACTIVE} for host, one in own.items()}
    old = [host for host, one in ages.items() if max_age is not None and not _is_young(one[level], max_age)]
    if as_json:
        options.print_json([{"node": host, "hours": one, "at": own[host].proven} for host, one in ages.items()])
    elif prometheus:
        click.echo(f"# HELP {METRIC} Hours since a node was proven at an active level.\n# TYPE {METRIC} gauge")
        for host, one in ages.items():
            for name, hours in one.items():
                quoted = json.dumps(clean(host))
                click.echo(f'{METRIC}{{node={quoted},level="{name}"}} {"+Inf" if hours is None else f"{hours:.2f}"}')
    else:
        shown = options.table("node", *ACTIVE, right=ACTIVE, whole=("node",))
        for host, one in sorted(ages.items(), key=lambda item: -(item[1][level] or DAYS * 24)):
            cells = ("none" if hours is None else f"{hours:.1f} h" for hours in one.values())
            shown.add_row(Text(clean(host), "bold red" if host in old else ""), *cells)
        Console(markup=False, highlight=False).print(shown)
    if old:
        said = f"{', '.join(map(clean, old[:8]))}{' ...' if len(old) > 8 else ''}"
        click.echo(f"not proven at level {level} within {max_age:g} h: {len(old)} of {len(ages)}: {said}", err=True)
    return 1 if old else 0


def _is_young(hours: float | None, most: float) -> bool:
    return hours is not None and hours <= most


def _fleet(store: Store) -> list[str]:
    return list(dict.fromkeys(host.host for run in runs_alike(store, store.run(LATEST)) for host in run.hosts))


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
