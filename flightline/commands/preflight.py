"""flightline preflight: the playbook with live progress, and the verdict last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from flightline_node.bounds import MAX_DEADLINE_S

from ..console import EXIT_ASKED, EXIT_BROKEN, EXIT_GO, EXIT_NO_GO, Console
from ..fabric.stage import Stage
from ..fleet.judgement import judge_run
from ..fleet.lookup import failed_hosts, find
from ..report.copies import is_plain
from ..report.text import clean
from ..run import cluster_inventory, launchers, places, playbooks
from ..run.conclude import Conclusion, show
from ..run.launchers import Detaching, Launcher, Listing
from ..run.live import RunObserver
from ..run.locate import open_store
from ..run.preflight import CannotRunError, Request, run
from ..run.progress import watching
from . import completing, options


def _any_of(names: Iterable[str]) -> str:
    return " or ".join(names)


def _help_of_inventory() -> str:
    listing = {name: launchers.kind(name) for name in launchers.that_can(Listing)}
    words = (f" {name}: {kind.lists}." for name, kind in listing.items() if issubclass(kind, Listing))
    return f"Inventory; default the embedded demo fleet.{''.join(words)}"


def _help_of_via() -> str:
    kinds = {name: launchers.kind(name) for name in launchers.names()}
    ways = (f"{name}: {one.says}{', never beside a job' * one.exclusive}." for name, one in kinds.items())
    return f"Who asks the nodes; default the inventory's flightline_via, else {launchers.DEFAULT}. {' '.join(ways)}"


def _help_of_words() -> str:
    taking = list(filter(lambda kind: kind.example, map(launchers.kind, launchers.names())))
    tools, examples = _any_of(kind.tool for kind in taking), _any_of(kind.example for kind in taking)
    return f"One more word for {tools}, such as {examples}; repeatable."


def _help_of_detach() -> str:
    vias = _any_of(launchers.that_can(Detaching))
    return (
        f"Ask and return: with --via {vias} a function of the stack judges; then flightline report RUN. Exit status 3."
    )


@click.command(
    cls=options.Command,
    example="flightline preflight -i inventory/aws_ec2.yml --level standard --limit 'p5_*'\n"
    "flightline preflight -i inventory/aws_ec2.yml --only-failed-of latest\n"
    "flightline preflight -i inventory/aws_ec2.yml --via slurm --via-option=--reservation=checks\n"
    "flightline preflight -i kubernetes",
    epilog="Ctrl-C ends the run; what was measured until then is judged. "
    "Exit status: 0 go, 1 no-go, 2 the preflight itself could not run, 3 asked with --detach, so no verdict yet.",
)
@click.option(
    "-i",
    "--inventory",
    cls=options.LateHelp,
    multiple=True,
    metavar="PATH",
    help=_help_of_inventory,
)
@options.level
@options.limit
@click.option(
    "--only-failed-of",
    metavar="RUN",
    shell_complete=completing.run_ids,
    help="Only the hosts that were no-go in this run (an id, or latest), again.",
)
@options.checks
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
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Write the JSON report here as well (- for standard output).",
)
@click.option(
    "--via",
    cls=options.LateHelp,
    type=options.Choice(launchers.names()),
    metavar="|".join(launchers.names()),
    help=_help_of_via,
)
@click.option(
    "--via-option",
    "via_options",
    cls=options.LateHelp,
    metavar="WORD",
    multiple=True,
    help=_help_of_words,
)
@click.option(
    "--detach",
    cls=options.LateHelp,
    is_flag=True,
    help=_help_of_detach,
)
@click.option("--need", type=click.IntRange(1), metavar="N", help="Go when this many nodes are go: start with those.")
@click.option("--report-dir", type=click.Path(path_type=Path), help="Directory for the report.")
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
    via: str | None,
    via_options: tuple[str, ...],
    detach: bool,
    need: int | None,
    report_dir: Path | None,
    store_path: str | None,
    publish_pairs: tuple[str, ...],
) -> None:
    """Judge every host of an inventory: go or no-go, with a reason for every node."""
    via = via or cluster_inventory.launcher_of(inventory) or None
    extra: dict[str, Any] = {
        name: value
        for name, value in (
            ("flightline_level", level),
            ("flightline_checks", list(select)),
            ("flightline_skip", list(skip)),
            ("flightline_publish", options.publishing(publish_pairs) if publish_pairs else None),
            ("flightline_need", need),
        )
        if value
    }
    path = options.store_file(store_path)
    if only_failed_of and limit:
        raise click.UsageError("saw --limit and --only-failed-of, wanted one of them")
    launcher = _launcher(via, via_options)
    if detach:
        _check_detached(launcher, beside=bool(json_path or need or report_dir))
    places.refuse(path, report_dir, json_path)
    inventory = cluster_inventory.resolved(inventory, path, launcher)
    report_dir = places.chosen_report_dir(report_dir)
    console = Console(stderr=json_path == Path("-"))
    try:
        with _failed_of(only_failed_of, path, inventory) as (given, failed), watching(console) as watcher:
            sources, hosts = playbooks.sources(given), failed or limit
            asked = Request(sources, hosts, extra, path, report_dir, forks or 0, timeout_s or 0, json_path)
            if isinstance(launcher, Detaching) and detach:
                ctx.exit(_detached(asked, launcher, watcher, console))
            stage = _stage(asked, level, bool(select), console)
            outcome = run(replace(asked, together=stage), watcher, launcher)
    except CannotRunError as error:
        click.echo(f"flightline: {error}", err=True)
        ctx.exit(EXIT_BROKEN)
    show(outcome, console)
    ctx.exit(outcome.exit_status if need is None else _enough(outcome, need, console))


def _launcher(via: str | None, words: Sequence[str]) -> Launcher | None:
    """Who is named to ask. Raises UsageError for words that nobody is handed, SettingsError for what it cannot be."""
    if words and via is None:
        taking = [name for name in launchers.names() if launchers.kind(name).example]
        raise click.UsageError(f"--via-option: saw it without a launcher; wanted --via {_any_of(taking)} beside it")
    return launchers.make(via, words) if via else None


def _check_detached(launcher: Launcher | None, beside: bool) -> None:
    """Raise UsageError for what a run that nobody waits for cannot be. beside: it was given options of its report."""
    if not isinstance(launcher, Detaching):
        saw, able = f"--via {launcher.name}" if launcher else "no --via", launchers.that_can(Detaching)
        only = f"only {'its' if len(able) == 1 else 'their'} nodes answer without this command"
        raise click.UsageError(f"--detach: saw {saw}; wanted --via {_any_of(able)}: {only}")
    if beside:
        raise click.UsageError(
            "--detach: saw --json, --need or --report-dir beside it; wanted them at flightline report"
        )


def _detached(asked: Request, launcher: Detaching, watcher: RunObserver, console: Console) -> int:
    """Ask, and leave the verdict to the stack."""
    from ..run import detached

    for line in detached.ask(asked, launcher, watcher):
        _say(console, line)
    return EXIT_ASKED


def _stage(asked: Request, level: str | None, chosen: bool, console: Console) -> Stage:
    """What tests the nodes together at level deep; its settings are read first where the level is known."""
    stage = Stage(asked.inventory, asked.limit, asked.store, lambda text: _say(console, text), chosen)
    if level == "deep":
        stage.check()
    return stage


def _say(console: Console, text: str) -> None:
    console.print(clean(text), markup=False, highlight=False, soft_wrap=True)


def _enough(outcome: Conclusion, need: int, console: Console) -> int:
    """The exit status where a job needs so many nodes, whatever became of the others. A broken run is no answer."""
    if outcome.broken:
        return outcome.exit_status
    go = outcome.report.counts["go"]
    word = "GO" if go >= need else "NO-GO"
    _say(console, f"{word}: {go} nodes are go, {need} needed; lists of them: go.* of the report")
    return EXIT_GO if go >= need else EXIT_NO_GO


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
        raise CannotRunError(f"saw {strange[0]!a}, wanted a name that --limit can take; do: rename it in the inventory")
    if not hosts:
        raise CannotRunError(
            f"run {report.run.id}: saw that no node of it was no-go, wanted one: there is nothing to judge again"
        )
    recorded = tuple(report.run.inventory.split(", "))
    own = recorded if all(Path(source).exists() for source in recorded) else ()
    with TemporaryDirectory(prefix="flightline-limit-") as directory:
        listed = Path(directory) / "hosts"
        listed.write_text("".join(f"{host}\n" for host in hosts), encoding="utf-8")
        yield inventory or own, f"@{listed}"
