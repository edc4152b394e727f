"""flightline preflight: the playbook with live progress, and the verdict last."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
from ..run.locate import open_store
from ..run.preflight import CannotRunError, LauncherWantedError, Request, RunObserver, run
from ..run.progress import watching
from . import options


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
    multiple=True,
    metavar="PATH",
    help="Inventory; default the embedded demo fleet. kubernetes: the GPU nodes of kubectl's cluster.",
)
@options.level
@options.limit
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
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Write the JSON report here as well (- for standard output).",
)
@click.option(
    "--via",
    type=options.Choice((launchers.ANSIBLE, *launchers.names())),
    metavar="|".join((launchers.ANSIBLE, *launchers.names())),
    help="Who asks the nodes; default the inventory's flightline_via, else ansible. "
    "slurm: srun, on the head node. ssm: Systems Manager, for a stack. kubernetes: kubectl, in the agents.",
)
@click.option(
    "--via-option",
    "via_options",
    metavar="WORD",
    multiple=True,
    help="One more word for srun or kubectl, such as --reservation=NAME or --context=NAME; repeatable.",
)
@click.option(
    "--detach",
    is_flag=True,
    help="Ask and return: with --via ssm a function of the stack judges; then flightline report RUN. Exit status 3.",
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
    if cluster_inventory.WORD in inventory:
        via = via or "kubernetes"
    extra: dict[str, Any] = {
        name: value
        for name, value in (
            ("flightline_level", level),
            ("flightline_checks", list(select)),
            ("flightline_skip", list(skip)),
            ("flightline_publish", options.publishing(publish_pairs) if publish_pairs else None),
            ("flightline_via", via),
            ("flightline_launches", via is None),
            ("flightline_need", need),
        )
        if value
    }
    path = options.store_file(store_path)
    if only_failed_of and limit:
        raise click.UsageError("saw --limit and --only-failed-of, wanted one of them")
    _check_words(via, via_options)
    if detach:
        _check_detached(via, beside=bool(json_path or need or report_dir))
    places.refuse(path, report_dir, json_path)
    inventory = cluster_inventory.resolved(inventory, path, via_options if via == "kubernetes" else ())
    to_stdout = json_path == Path("-")
    console = Console(stderr=to_stdout)
    try:
        with _failed_of(only_failed_of, path, inventory) as (sources, failed), watching(console) as watcher:
            asked = Request(sources, failed or limit, extra, path, report_dir, forks or 0, timeout_s or 0, json_path)

            def judged(by: str) -> Conclusion:
                srun = via_options if by == "slurm" else None
                together = _together(sources, asked.limit, level, bool(select), path, console, srun)
                return _run_by(by, via_options, replace(asked, together=together), watcher)

            try:
                if detach:
                    ctx.exit(_detached(asked, watcher, console))
                outcome = judged(via or launchers.ANSIBLE)
            except LauncherWantedError as wanted:
                extra["flightline_launches"] = False
                outcome = judged(wanted.via)
    except CannotRunError as error:
        click.echo(f"flightline: {error}", err=True)
        ctx.exit(EXIT_BROKEN)
    show(outcome, console)
    ctx.exit(outcome.exit_status if need is None else _enough(outcome, need, console))


def _check_words(via: str | None, words: Sequence[str]) -> None:
    """Raise UsageError for words that no launcher can be handed."""
    if words and via in (None, launchers.ANSIBLE):
        raise click.UsageError("--via-option: saw it without a launcher; wanted --via slurm beside it")
    # srun would run another first word on the nodes, in place of the node library.
    if words and not re.match("--?[A-Za-z]", words[0]):
        raise click.UsageError(f"--via-option: saw {words[0]}, wanted an option first, such as --reservation=NAME")


def _check_detached(via: str | None, beside: bool) -> None:
    """Raise UsageError for what a run that nobody waits for cannot be. beside: it was given options of its report."""
    if via != "ssm":
        saw = f"--via {via}" if via else "no --via"
        raise click.UsageError(f"--detach: saw {saw}; wanted --via ssm: only its nodes answer without this command")
    if beside:
        raise click.UsageError(
            "--detach: saw --json, --need or --report-dir beside it; wanted them at flightline report"
        )


def _detached(asked: Request, watcher: RunObserver, console: Console) -> int:
    """Ask, and leave the verdict to the stack."""
    from ..run import detached

    for line in detached.ask(asked, watcher):
        _say(console, line)
    return EXIT_ASKED


def _run_by(via: str, words: Sequence[str], asked: Request, watcher: RunObserver) -> Conclusion:
    """Run it with Ansible or a launcher. Raises LauncherWantedError where Ansible is not what the inventory says."""
    if via == launchers.ANSIBLE:
        return run(asked, watcher)
    from ..run import launched

    return launched.run(asked, launchers.make(via, words), watcher)


def _together(
    sources: tuple[str, ...],
    limit: str,
    level: str | None,
    chosen: bool,
    path: Path,
    console: Console,
    srun: tuple[str, ...] | None,
) -> Stage:
    """What tests the nodes together at level deep; its settings are read first where the level is known."""
    stage = Stage(playbooks.sources(sources), limit, path, lambda text: _say(console, text), chosen, srun)
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
