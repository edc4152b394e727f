"""flightline history: what a node answered before."""

from __future__ import annotations

import click
from rich.padding import Padding
from rich.text import Text

from flightline_node.model import BLOCKING, Verdict

from ..console import Console
from ..fleet.offenders import Offender, offenders
from ..report.text import clean, count
from ..run.locate import open_store
from ..store.sqlite import Past, Store, StoreError, status_of
from . import completing, options


@click.command(
    cls=options.Command,
    example="flightline history i-0123456789abcdef0",
)
@click.argument("node", shell_complete=completing.hosts)
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1), help="Most results to show.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@options.store
def command(node: str, limit: int, as_json: bool, store_path: str | None) -> None:
    """Show the results of NODE, newest first: a host name, instance id, GPU serial or GPU UUID.

    A GPU that was blamed in more than one run is named by its serial, with every instance it was blamed on; what no GPU
    is blamed for is the node's.
    """
    with open_store(store_path) as store:
        past = store.history(node, limit)
        if not past:
            raise StoreError(
                f"saw nothing known of {node!r}; wanted a host, hosts of the last run: {_hosts(store) or 'none'}"
            )
        repeated = offenders(store, node, past, limit)
    if as_json:
        options.print_json([_as_dict(item) for item in past])
        return
    console = Console()
    for item in past:
        _show(item, console)
    for offender in repeated:
        console.print(Text(clean(_sentence(offender)), "bold red"), soft_wrap=True)


def _show(item: Past, console: Console) -> None:
    """A line, and the reasons below it: beside it they had a fifth of the width of a terminal."""
    cells = (item.run_id, item.started_at, item.host, item.instance_id or "-", item.verdict)
    style = "" if item.verdict == Verdict.GO else "bold red"
    console.print(Text("  ".join(map(clean, cells)), style), soft_wrap=True)
    for reason in _why(item):
        console.print(Padding(Text(clean(reason)), (0, 0, 0, 4), expand=False))


def _hosts(store: Store) -> str:
    return ", ".join(sorted({host.host for run in store.runs(1) for host in store.run(run.run_id).hosts})[:8])


def _sentence(offender: Offender) -> str:
    places = ", ".join(f"{instance} ({host})" if instance else host for instance, host in offender.places)
    moved = " (it came back on another node)" if offender.moved else ""
    return (
        f"repeat offender: {offender.name} was blamed in {offender.blamed} of {count(offender.runs, 'run')} "
        f"({', '.join(offender.checks)}) on {places}{moved}"
    )


def _why(item: Past) -> list[str]:
    blocking = [f for f in item.record.get("findings", []) if status_of(f) in BLOCKING]
    return [f"{finding['check']}: {finding['message']}" for finding in blocking]


def _as_dict(item: Past) -> dict[str, object]:
    keys = ("run_id", "started_at", "host", "instance_id", "verdict", "status")
    return {**{key: getattr(item, key) for key in keys}, "why": _why(item)}
