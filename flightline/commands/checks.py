"""flightline checks: the catalogue."""

from __future__ import annotations

import click

from flightline_node import names
from flightline_node.judge.checks import CHECKS
from flightline_node.model import LEVELS, Check, SettingsError
from flightline_node.suggest import unknown

from ..console import Console
from ..fleet.checks import FLEET_CHECKS, FleetCheck
from . import completing, options


@click.command(
    cls=options.Command,
    example="flightline checks gpu_count",
)
@click.argument("check_id", metavar="[ID]", required=False, shell_complete=completing.check_ids)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(check_id: str | None, as_json: bool) -> None:
    """List the checks, or explain one: what it looks at, why it matters, what to do, its thresholds."""
    given, check_id = check_id, check_id and names.check_id(check_id)
    if given and check_id != given:
        click.echo(f"warning: {names.earlier(given, str(check_id))}", err=True)
    if check_id and check_id not in CHECKS and check_id not in FLEET_CHECKS:
        known = sorted([*CHECKS, *FLEET_CHECKS])
        raise SettingsError(unknown("check", check_id, known))
    if as_json:
        wanted = [check for check in CHECKS.values() if check_id in (None, check.id)]
        options.print_json([_as_dict(check) for check in wanted])
    elif check_id in CHECKS:
        _explain(CHECKS[str(check_id)])
    elif check_id:
        _explain_fleet(check_id, FLEET_CHECKS[check_id])
    else:
        _list()


def _list() -> None:
    table = options.table("id", "level", "tags", "title")
    for check in sorted(CHECKS.values(), key=lambda check: (LEVELS.index(check.level), check.tags[:1], check.id)):
        table.add_row(check.id, check.level, ", ".join(check.tags), check.title)
    for name, fleet_check in FLEET_CHECKS.items():
        table.add_row(name, "every", "fleet", fleet_check.title)
    Console(markup=False, highlight=False).print(table)


def _explain(check: Check) -> None:
    click.echo(f"{check.id}: {check.title} (level {check.level}; tags {', '.join(check.tags)})")
    for label, text in (("what", check.what), ("why", check.why), ("remedy", check.remedy), ("source", check.source)):
        click.echo(f"  {label:<10} {text}")
    reads = [
        *check.needs,
        *(f"{name} (or another)" for name in check.needs_any),
        *(f"{n} (if there)" for n in check.wants),
    ]
    click.echo(f"  {'reads':<10} {', '.join(reads)}")
    if check.expects:
        click.echo(f"  {'expected':<10} {', '.join(check.expects)}")
    for reason in check.skips:
        click.echo(f"  {'skipped':<10} {reason.id}: {reason.says}")
    for threshold in check.thresholds:
        name, default = f"{check.id}.{threshold.name}", f"{threshold.default:g} {threshold.unit}"
        click.echo(f"  {'threshold':<10} {name} = {default}: {threshold.what}")


def _explain_fleet(name: str, check: FleetCheck) -> None:
    click.echo(f"{name}: {check.title} (judged over the whole fleet)")
    for label, text in (("why", check.why), ("remedy", check.remedy)):
        click.echo(f"  {label:<10} {text}")


def _as_dict(check: Check) -> dict[str, object]:
    texts = {key: getattr(check, key) for key in ("id", "title", "what", "why", "remedy", "source", "level")}
    lists = {key: list(getattr(check, key)) for key in ("needs", "needs_any", "wants", "expects", "tags")}
    thresholds = [
        {"name": f"{check.id}.{t.name}", "default": t.default, "unit": t.unit, "what": t.what, "source": t.source}
        for t in check.thresholds
    ]
    skips = {reason.id: reason.says for reason in check.skips}
    return {**texts, **lists, "thresholds": thresholds, "skips": skips, "informs": check.informs}
