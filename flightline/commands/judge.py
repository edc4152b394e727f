"""flightline judge: the same findings as on the node, from files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from flightline_node.ask.probes import BY_ID
from flightline_node.judge.judgement import Judgement, judge, to_json
from flightline_node.know.expected import resolve
from flightline_node.model import LEVELS, Finding, Status, Verdict, device_label
from flightline_node.read import bundle as bundles
from flightline_node.settings import NodeSettings, build

from ..console import Console, reader_may_leave
from ..report.terminal import STYLES
from ..report.text import clean
from ..store.archives import unpacked
from ..store.jsontext import encode
from . import options


@click.command(
    cls=options.Command,
    example="flightline judge ./gpu-7 --instance-type p5.48xlarge --expected driver_version=580\n"
    "flightline judge .flightline/bundles/RUN/gpu-7.tar.gz --json",
    epilog="A check whose file is not in the bundle is SKIP; a bundle in which nothing could be judged is no-go. "
    "Exit status: 0 go, 1 no-go, 2 misuse.",
)
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--instance-type", metavar="T", help="EC2 instance type, or none: judge only what needs no expectation.")
@options.level
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: verdict, findings, facts.")
@click.option("--expected", metavar="K=V", multiple=True, help="An expected value on top of the type's; repeatable.")
@click.option("--threshold", metavar="K=V", multiple=True, help="A threshold by full name; repeatable.")
@click.option("--check", "select", metavar="ID", multiple=True, help="Only this check or tag; repeatable.")
@click.option("--skip", metavar="ID", multiple=True, help="Leave out this check or tag; repeatable.")
@click.pass_context
def command(
    ctx: click.Context,
    bundle: Path,
    instance_type: str | None,
    level: str | None,
    as_json: bool,
    expected: tuple[str, ...],
    threshold: tuple[str, ...],
    select: tuple[str, ...],
    skip: tuple[str, ...],
) -> None:
    """Judge BUNDLE, a directory of raw tool outputs or a .tar.gz of one, with or without a manifest.

    Without --level every check whose file is there is judged, and processes on the GPUs are
    only reported: nothing says that the node was to be idle.
    """
    with unpacked(bundle) if bundle.is_file() else nullcontext(bundle) as directory:
        loaded = bundles.load(directory)
        wanted = instance_type or str(loaded.manifest.get("instance_type") or "")
        if not wanted:
            raise click.UsageError(
                "saw a bundle that does not say which type was expected; wanted: --instance-type is needed"
            )
        settings = build(
            level=level or _collected_level(loaded.manifest),
            select=select,
            skip=skip,
            thresholds=options.pairs(threshold, "--threshold"),
        )
        overrides = options.pairs(expected, "--expected")
        names = [str(loaded.manifest[key]) for key in ("host", "instance_id") if loaded.manifest.get(key)]
        judgement = judge(
            loaded,
            resolve(wanted, overrides),
            _up_to(settings, level),
            datetime.now(timezone.utc),
            required=False,
            names=names,
        )
    if as_json:
        # Through the strict writer first: a tool that prints NaN must not make this something else than JSON.
        with reader_may_leave():
            click.echo(json.dumps(json.loads(encode(to_json(judgement, wanted))), indent=1))
    else:
        _print(judgement, Console())
    ctx.exit(0 if judgement.verdict is Verdict.GO else 1)


def _collected_level(manifest: Mapping[str, Any]) -> str:
    """The level a bundle was collected at, by its probes: only above `quick` was the node to be free of jobs."""
    probes = manifest.get("probes")
    ids = [str(entry.get("id")) for entry in probes if isinstance(entry, dict)] if isinstance(probes, list) else []
    return max((BY_ID[name].level for name in ids if name in BY_ID), key=LEVELS.index, default=LEVELS[0])


def _up_to(settings: NodeSettings, level: str | None) -> NodeSettings:
    if level is None:
        return settings
    levels = LEVELS[: LEVELS.index(level) + 1]
    return replace(settings, checks=tuple(check for check in settings.checks if check.level in levels))


def _print(judgement: Judgement, console: Console) -> None:
    shown = [finding for finding in judgement.findings if finding.status is not Status.SKIP]
    table = Table(box=None, pad_edge=False, show_edge=False)
    for heading in ("status", "check", "device", "message", "remedy"):
        table.add_column(heading, overflow="fold")
    for finding in _worst_first(shown):
        remedy = "" if finding.remedy == "NONE" else str(finding.remedy)
        cells = (finding.check, device_label(finding.device), finding.message, remedy)
        table.add_row(Text(str(finding.status), STYLES[finding.status]), *(Text(clean(cell)) for cell in cells))
    if shown:
        console.print(table)
    skipped = len(judgement.findings) - len(shown)
    good = judgement.verdict is Verdict.GO
    why = "" if shown else ": nothing in the bundle could be judged"
    console.print(
        Text(str(judgement.verdict).upper(), "bold green" if good else "bold red"),
        Text(f"{len(shown)} findings, {skipped} skipped{why}"),
    )


def _worst_first(findings: Iterable[Finding]) -> list[Finding]:
    order = list(STYLES)
    return sorted(findings, key=lambda finding: order.index(finding.status))
