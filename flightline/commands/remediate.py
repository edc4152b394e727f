"""flightline remediate: what to do about sick nodes, and doing it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence

import click
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..console import Console
from ..healing import act, persons, site
from ..healing.plan import show
from ..healing.plan.planner import FleetState, NextStep, RemediationPlan
from ..healing.request import SCHEDULERS, HealingRequest
from ..healing.site import SitePolicy
from ..report.text import clean
from ..store.sqlite import StoreError
from . import options

MODES = ("advise", "ask", "act")


@click.command(
    cls=options.Command,
    example="flightline remediate\nflightline remediate --need 60 --set budget_percent=5\n"
    "flightline remediate --mode act --every 60 -i inventory/aws_ec2.yml",
    epilog="Exit status: 0 when nothing is left to do, 1 when something is, 2 when the tool could not run.",
)
@click.option(
    "--mode",
    type=options.Choice(MODES),
    default="advise",
    show_default=True,
    metavar="|".join(MODES),
    help="advise changes nothing, ask asks before each step, act takes the steps.",
)
@click.option("--once", is_flag=True, help="One round, the default.")
@click.option(
    "--every", "every_s", type=click.FloatRange(1), metavar="SECONDS", help="A round that often, until ended."
)
@click.option(
    "-i",
    "--inventory",
    multiple=True,
    metavar="PATH",
    help="Inventory; default the one of the run. kubernetes: nodes are healed through kubectl's cluster.",
)
@click.option("--run", "run_name", default="latest", show_default=True, metavar="RUN", help="The run to go by.")
@click.option("--need", type=click.IntRange(0), metavar="N", help="Nodes of each group that must stay in service.")
@click.option(
    "--set",
    "given",
    multiple=True,
    metavar="NAME=VALUE",
    help=f"A site setting, on top of {site.SITE_ENV}: {', '.join(site.WHAT)}; repeatable.",
)
@click.option(
    "--scheduler",
    type=options.Choice(SCHEDULERS),
    default="auto",
    show_default=True,
    metavar="|".join(SCHEDULERS),
    help="Who is asked which jobs run; auto: Kubernetes with -i kubernetes, Slurm where it is configured.",
)
@click.option("--ec2", is_flag=True, help="Instances may be rebooted and replaced through EC2.")
@click.option("--retry", metavar="NODE", help="Judge a held node again, and return it when it is good; then end.")
@click.option("--reset-breaker", metavar="GROUP", help="Go on in a group whose breaker fell; then end.")
@click.option("--approve", metavar="NODE", help="Let the step be taken that waits for a person; then end.")
@click.option("--veto", metavar="NODE", help="Do not let it be taken: the node is held; then end.")
@click.option("--pause", metavar="WHY", help="Stop every actor, the nodes' watchers and hooks included; then end.")
@click.option("--resume", is_flag=True, help="End a pause.")
@click.option(
    "--replay",
    metavar="HOURS",
    type=click.FloatRange(0.1),
    help="What these settings would have done lately; then end.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@options.store
@click.pass_context
def command(
    ctx: click.Context,
    mode: str,
    once: bool,
    every_s: float | None,
    inventory: tuple[str, ...],
    run_name: str,
    need: int | None,
    given: tuple[str, ...],
    scheduler: str,
    ec2: bool,
    retry: str | None,
    reset_breaker: str | None,
    approve: str | None,
    veto: str | None,
    pause: str | None,
    resume: bool,
    replay: float | None,
    as_json: bool,
    store_path: str | None,
) -> None:
    """Say of every sick node what to do now, why, and what that does to running jobs; or do it.

    A node is taken out of service, its jobs end, it is repaired step by step (restart, reset, reboot, replace), and it
    returns only when a preflight of the level that found the fault says go.
    """
    if once and every_s:
        raise click.UsageError("saw --once and --every, wanted one of them")
    wanted = settings(given, need)
    asked = HealingRequest(run_name, inventory, scheduler, ec2, wanted, store_path, every_s or 0.0)
    decisions: dict[str, tuple[object, Callable[[], str]]] = {
        "--retry": (retry, lambda: persons.retry(asked, str(retry))),
        "--reset-breaker": (reset_breaker, lambda: persons.reset(asked, str(reset_breaker))),
        "--approve": (approve, lambda: persons.decide(asked, str(approve), approved=True)),
        "--veto": (veto, lambda: persons.decide(asked, str(veto), approved=False)),
        "--pause": (pause, lambda: persons.pause(asked, str(pause))),
        "--resume": (resume, lambda: persons.resume(asked)),
        "--replay": (replay, lambda: persons.replayed(asked, float(replay or 0))),
    }
    named = [name for name, (value, _) in decisions.items() if value]
    if len(named) > 1:
        raise click.UsageError(f"saw {' and '.join(named)}, wanted one of them")
    if named:
        click.echo(decisions[named[0]][1]())
        return
    console = Console(soft_wrap=False, stderr=as_json)
    report = _reporter(console, mode, as_json)
    ask = _ask(console) if mode == "ask" else None
    if not every_s:
        ctx.exit(1 if _round(asked, mode, report, console, ask) else 0)
    if mode == "act" and not wanted.prove:
        console.print(Text("idle nodes are not proven by schedule: --set prove=1 (docs/healing.md)", "dim"))
    while True:
        try:
            _round(asked, mode, report, console, ask)
        except StoreError as error:
            # No run yet, another remediator at work, a table that throttles: the next round may be better.
            console.print(Text(f"warning: {clean(str(error))}; next round in {every_s:g} s", "yellow"), soft_wrap=True)
        time.sleep(every_s)


def _round(
    asked: HealingRequest,
    mode: str,
    report: act.Report,
    console: Console,
    approve: Callable[[NextStep], bool] | None,
) -> bool:
    """One round; is there anything left to do? Raises StoreError."""
    return act.advise(asked, report) if mode == "advise" else act.do(asked, report, _say(console), approve)


def settings(given: tuple[str, ...], need: int | None) -> SitePolicy:
    """The site's settings: the environment, --set above it, --need above both. Raises SettingsError."""
    named = {**site.from_environment(), **options.pairs(given, "--set")}
    return site.settings({**named, **({} if need is None else {"need": need})})


def _reporter(console: Console, mode: str, as_json: bool) -> act.Report:
    """Shows a plan, once for as long as it stays the same: a service would fill its journal with it."""
    shown: list[str] = []

    def report(
        made: RemediationPlan, fleet: FleetState, wanted: SitePolicy, facts: str, known: str, trouble: str
    ) -> None:
        said = json.dumps([show.as_dict(made), known, trouble], indent=1)
        if said in shown:
            return
        shown[:] = [said]
        if as_json:
            options.print_json(show.as_dict(made))
        else:
            print_plan(made, fleet, wanted, console, mode, facts, trouble, known)

    return report


def _say(console: Console) -> Callable[[str], None]:
    return lambda text: console.print(Text(clean(text)), soft_wrap=True)


def _ask(console: Console) -> Callable[[NextStep], bool]:
    def approve(step: NextStep) -> bool:
        print_step(console, step, 0, "")
        return click.confirm("take this step?", default=False)

    return approve


def print_plan(
    made: RemediationPlan,
    fleet: FleetState,
    wanted: SitePolicy,
    console: Console,
    mode: str,
    facts: str,
    trouble: str = "",
    known: str = "",
) -> None:
    """Print a plan for a person to sign."""
    console.print(Text(show.headline(made, mode), "bold"))
    console.print(Text(clean(facts), "dim"))
    if trouble:
        console.print(Text(f"warning: {clean(trouble)}", "yellow"))
    for trip in made.trips:
        console.print(Text(f"STOP {clean(trip.why)}", "bold red"))
    for number, step in enumerate(made.steps[: show.MOST_SHOWN], 1):
        print_step(console, step, number, known)
    if len(made.steps) > show.MOST_SHOWN:
        console.print(f"... {len(made.steps) - show.MOST_SHOWN:,} more: --json lists them all")
    console.print()
    console.print(Text("Groups", "bold"))
    console.print(Padding(_grid(show.group_lines(fleet, wanted)), (0, 0, 0, 2)))


def print_step(console: Console, step: NextStep, number: int, known: str) -> None:
    """One step: what, and why in a few lines."""
    console.print()
    head = f"{number}. {show.title(step)}" if number else show.title(step)
    console.print(Text(head, "bold" if step.changes else "yellow"))
    console.print(Padding(_grid(show.lines(step, known)), (0, 0, 0, 3)))


def _grid(lines: Sequence[show.Line]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for label, text in lines:
        table.add_row(Text(label), Text(text))
    return table
