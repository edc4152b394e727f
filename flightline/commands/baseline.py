"""flightline baseline: learn what known-good nodes reach, save it, and judge by it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

import click
from rich.text import Text

from flightline_node.model import SettingsError, Verdict

from ..console import Console
from ..fleet import baseline as criteria
from ..fleet.baseline import Baseline, BaselineError, Limit
from ..fleet.judgement import judge_run
from ..fleet.lookup import find
from ..report.text import clean
from ..run import baselines
from ..run.locate import open_store
from . import options

FABRIC_SCHEMA = "flightline-fabric/3"
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group(
    epilog="Example: flightline baseline save --run latest --file p5.json, then flightline baseline use p5.json. "
    "Exit status: 0 done, 2 refused, with the reason."
)
def command() -> None:
    """Learn what known-good nodes reach, and judge later runs by it."""


@command.command(
    cls=options.Command,
    example="flightline baseline save --run latest --file p5.json\n"
    "flightline baseline save --run latest --fabric .flightline/fabric/RUN/result.json --file p5.json",
)
@click.option("--run", metavar="RUN", help="Learn from the go nodes of this preflight (an id, or latest).")
@click.option("--fabric", type=_FILE, metavar="FILE", help="And from the pairs of this flightline fabric result.")
@click.option("--type", "instance_type", metavar="TYPE", help="The instance type, where the run has several.")
@click.option("--file", "path", type=_FILE, required=True, help="Where to save it.")
@options.store
def save(run: str | None, fabric: Path | None, instance_type: str | None, path: Path, store_path: str | None) -> None:
    """Learn a criterion from nodes known to be good; nodes that were no-go teach nothing."""
    if not run and not fabric:
        raise click.UsageError("saw neither --run nor --fabric; wanted one: nodes known to be good")
    parts = [part for part in (_of_run(run, instance_type, store_path) if run else None,
                               _of_fabric(fabric, instance_type) if fabric else None) if part]  # fmt: skip
    try:
        found = criteria.checked(_joined(parts))
        baselines.write(path, found)
    except (BaselineError, OSError) as error:
        raise SettingsError(str(error)) from error
    click.echo(f"{path}: {found.instance_type}, {len(found.nodes)} nodes, {len(found.limits)} measures, "
               f"{len(found.pairs)} collectives of pairs")  # fmt: skip


def _of_run(run: str, instance_type: str | None, store_path: str | None) -> Baseline:
    with open_store(store_path) as store:
        report = judge_run(store, find(store, run).run_id)
        good = [row for row in report.rows if row.verdict is Verdict.GO]
        name = _one_type(instance_type, sorted({row.instance_type for row in good}))
        hosts = tuple(row.host for row in good if row.instance_type == name)
        limits = criteria.learn(store.records(report.run.id), name, hosts)
    return Baseline(name, report.run.started_at, f"preflight {report.run.id}", hosts, limits)


def _of_fabric(path: Path, instance_type: str | None) -> Baseline:
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(given, Mapping) or given.get("schema") != FABRIC_SCHEMA:
            raise ValueError(f"another schema than {FABRIC_SCHEMA}")
        good = tuple(map(str, given["healthy"]))
        made, name = str(given["started_at"]), _one_type(instance_type, [str(given["instance_type"])])
        return Baseline(name, made, f"fabric {given['run']}", good, (), criteria.learn_pairs(given, good))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise SettingsError(f"{path}: saw {error}; wanted a result of flightline fabric --json") from error


def _one_type(asked: str | None, seen: list[str]) -> str:
    named = [asked] if asked else seen
    if len(named) != 1 or named[0] not in seen:
        raise SettingsError(f"saw go nodes of the types {', '.join(seen) or 'none'}, wanted one; do: name it by --type")
    return named[0]


def _joined(parts: list[Baseline]) -> Baseline:
    """One baseline of both sources. Raises BaselineError where they are of different types."""
    types = sorted({part.instance_type for part in parts})
    if len(types) > 1:
        raise BaselineError(f"saw the types {' and '.join(types)}, wanted one; do: save one baseline for each")
    nodes = tuple(sorted({node for part in parts for node in part.nodes}))
    limits = tuple(one for part in parts for one in part.limits)
    pairs = tuple(one for part in parts for one in part.pairs)
    # As old as its older half.
    return Baseline(
        types[0], min(part.made_at for part in parts), ", ".join(part.source for part in parts), nodes, limits, pairs
    )


@command.command(cls=options.Command, example="flightline baseline show\nflightline baseline show p5.json --json")
@click.argument("path", required=False, type=_FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@options.store
def show(path: Path | None, as_json: bool, store_path: str | None) -> None:
    """Show a baseline, or those in use, and whether they still hold."""
    paths = [path] if path else list(baselines.in_use(options.store_file(store_path)).values())
    try:
        found = [baselines.load(one) for one in paths]
    except BaselineError as error:
        raise SettingsError(str(error)) from error
    if as_json:
        options.print_json([one.to_dict() for one in found])
        return
    console = Console(highlight=False)
    for one in found:
        _print(console, one)
    if not found:
        console.print(Text("no baseline is in use; flightline baseline save, then use"))


def _print(console: Console, one: Baseline) -> None:
    why = criteria.unfit(one, one.instance_type, datetime.now(timezone.utc))
    console.print(Text(f"{clean(one.instance_type)}: {len(one.nodes)} nodes, {clean(one.source)}, {one.made_at}"))
    if why:
        console.print(Text(clean(why), "bold red"), soft_wrap=True)
    table = options.table("measure", "unit", "nodes", "median", "robust sd", "limit")
    for limit, what in [*((one, "") for one in one.limits), *((one, "pairs ") for one in one.pairs)]:
        table.add_row(*_row(limit, what))
    console.print(table)


def _row(one: Limit, what: str) -> list[Text]:
    word = "at least" if one.side < 0 else "at most"
    figures = (f"{one.nodes}", f"{one.median:g}", f"{one.sigma:g}", f"{word} {one.limit:g}")
    return [Text(clean(text)) for text in (what + one.measure, one.unit, *figures)]


@command.command(cls=options.Command, example="flightline baseline use p5.json\nflightline baseline use --none")
@click.argument("path", required=False, type=_FILE)
@click.option("--none", "nothing", is_flag=True, help="Use none; with --type, none for that type.")
@click.option("--type", "instance_type", metavar="TYPE", help="The instance type that the nodes have.")
@options.store
def use(path: Path | None, nothing: bool, instance_type: str | None, store_path: str | None) -> None:
    """Judge the nodes of its type by a baseline from now on: flightline preflight and flightline fabric."""
    store = options.store_file(store_path)
    if bool(path) == nothing:
        raise click.UsageError("saw both or neither of a file and --none; wanted one")
    if path is None:
        for name, used in baselines.in_use(store).items():
            if instance_type in (None, name):
                used.unlink(missing_ok=True)
                click.echo(f"no baseline for {name} from now on")
        return
    try:
        found = baselines.load(path)
        why = criteria.unfit(found, instance_type or found.instance_type, datetime.now(timezone.utc))
        if why:
            raise BaselineError(why)
        kept = baselines.use(store, found)
    except (BaselineError, OSError) as error:
        raise SettingsError(str(error)) from error
    click.echo(f"nodes of {found.instance_type} are judged by it from now on: {kept}")
