"""flightline judge: the same findings as on the node, from files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from rich.text import Text

from flightline_node import names
from flightline_node.ask.probes import BY_ID
from flightline_node.judge.checks import CHECKS
from flightline_node.judge.judgement import Judgement, judge, to_json
from flightline_node.know.expected import resolve
from flightline_node.model import LEVELS, Verdict, as_status, device_label, worst
from flightline_node.read.accounting import Account, BundleFile, findings_of, name_by_content
from flightline_node.settings import NodeSettings, build

from ..console import Console, reader_may_leave
from ..fleet.result import NodeRow
from ..report.one_node import NodePage
from ..report.sheet import STYLES
from ..report.text import clean
from ..store.archives import alone, is_archive, unpacked
from ..store.jsontext import encode
from . import options


@click.command(
    cls=options.Command,
    example="flightline judge ./gpu-7 --instance-type p5.48xlarge --expected driver_version=580\n"
    "flightline judge dmesg.log --instance-type none\n"
    "flightline judge .flightline/bundles/RUN/gpu-7.tar.gz --json",
    epilog="A check whose file is not in the bundle is SKIP; a bundle in which nothing could be judged is no-go. "
    "Exit status: 0 go, 1 no-go, 2 misuse.",
)
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--instance-type", metavar="T", help="EC2 instance type, or none: judge only what needs no expectation.")
@options.level
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: verdict, findings, facts, files.")
@click.option("--all", "every", is_flag=True, help="Print every finding and every file behind the summary.")
@click.option(
    "--unread", is_flag=True, help="List the log lines in an error's shape that no rule knows, grouped and counted."
)
@click.option("--expected", metavar="K=V", multiple=True, help="An expected value on top of the type's; repeatable.")
@click.option("--threshold", metavar="K=V", multiple=True, help="A threshold by full name; repeatable.")
@options.checks
@click.pass_context
def command(
    ctx: click.Context,
    bundle: Path,
    instance_type: str | None,
    level: str | None,
    as_json: bool,
    every: bool,
    unread: bool,
    expected: tuple[str, ...],
    threshold: tuple[str, ...],
    select: tuple[str, ...],
    skip: tuple[str, ...],
) -> None:
    """Judge BUNDLE, a directory of raw tool outputs, a .tar.gz of one, or a single file such as dmesg.log.

    Without --level every check whose file is there is judged, and processes on the GPUs are
    only reported: nothing says that the node was to be idle. Every file is accounted for: what
    looks like a tool's output and was not read is UNKNOWN, and no go stands beside it.
    """
    overrides, limits = options.pairs(expected, "--expected"), options.pairs(threshold, "--threshold")
    with _files_of(bundle) as account:
        loaded = account.bundle
        wanted = instance_type or str(loaded.manifest.get("instance_type") or "")
        if not wanted:
            raise click.UsageError(
                "saw a bundle that does not say which type was expected; wanted: --instance-type is needed; "
                "do: --instance-type none judges what needs no expectation"
            )
        for warning in names.warnings({"checks": select, "skip": skip, "thresholds": limits}):
            click.echo(f"warning: {warning}", err=True)
        settings = build(level=level or _collected_level(loaded.manifest), select=select, skip=skip, thresholds=limits)
        known_as = [str(loaded.manifest[key]) for key in ("host", "instance_id") if loaded.manifest.get(key)]
        judgement = judge(
            loaded,
            resolve(wanted, overrides),
            _up_to(settings, level),
            datetime.now(timezone.utc),
            required=False,
            names=known_as,
        )
        judgement, files = _accounted(judgement, account)
    if as_json:
        # Through the strict writer first: a tool that prints NaN must not make this something else than JSON.
        with reader_may_leave():
            answer = {**to_json(judgement, wanted), "files": [one.to_dict() for one in files]}
            click.echo(json.dumps(json.loads(encode(answer)), indent=1))
    else:
        _print(_row(judgement, loaded.manifest, bundle, wanted), [wanted, str(bundle)], files, every)
    if unread and not as_json:
        _print_unread(judgement.facts)
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


@contextmanager
def _files_of(bundle: Path) -> Iterator[Account]:
    """The files of a bundle, unpacked where they are packed, all accounted for."""
    whole: AbstractContextManager[Path]
    if bundle.is_file():
        whole = unpacked(bundle) if is_archive(bundle) else alone(bundle, name_by_content(bundle))
    else:
        whole = nullcontext(bundle)
    with whole as directory, TemporaryDirectory(prefix="flightline-files-") as scratch:
        yield Account(directory, Path(scratch))


def _accounted(judgement: Judgement, account: Account) -> tuple[Judgement, list[BundleFile]]:
    """The judgement with what was not read: a go is not given beside it."""
    answered = [CHECKS[finding.check] for finding in judgement.findings if finding.check in CHECKS]
    needed = {name for check in answered for name in check.needs}
    files = account.settled(judgement.unreadable, needed, judgement.findings)
    unread = findings_of(files)
    if not unread:
        return judgement, files
    return replace(judgement, verdict=Verdict.NO_GO, findings=(*judgement.findings, *unread)), files


def _row(judgement: Judgement, manifest: Mapping[str, Any], bundle: Path, instance_type: str) -> NodeRow:
    findings = [finding.to_dict() for finding in judgement.findings]
    host = str(manifest.get("host") or bundle.absolute().name)
    status = worst(finding.status for finding in judgement.findings)
    return NodeRow(host, judgement.verdict, status, instance_type=instance_type, findings=findings)


def _print(row: NodeRow, about: list[str], files: list[BundleFile], every: bool) -> None:
    console = Console()
    page = NodePage(row, about, files, console)
    page.print()
    if every:
        of_files = ([Text(clean(cell)) for cell in _cells(one)] for one in files)
        findings = options.table("status", "check", "device", "message", "remedy"), _findings(row)
        for table, cells in (findings, (options.table("file", "state", "as", "why"), of_files)):
            for line in cells:
                table.add_row(*line)
            console.print()
            console.print(table)
        page.banner()


def _print_unread(facts: Mapping[str, Any]) -> None:
    """What real logs tell to class next. Those of earlier boots do not count, and are listed too."""
    console, kernel = Console(), facts.get("kernel") or {}
    boots = {True: "kernel, this boot", False: "kernel, earlier boot"}
    rows = [(boots[one["boot"] == kernel["last_boot"]], one) for one in kernel.get("unread", ())]
    rows += [(name, one) for name, read in facts.items() for one in read.get("not_understood", {}).get("unread", ())]
    table = options.table("lines", "of", "not understood")
    for where, one in sorted(rows, key=lambda row: (row[0] == boots[False], -row[1]["count"])):
        table.add_row(*(Text(clean(cell)) for cell in (str(one["count"]), where, one["text"])))
    console.print()
    console.print(table)


def _findings(row: NodeRow) -> Iterator[list[Text]]:
    order = list(STYLES)
    for finding in sorted(row.findings, key=lambda finding: order.index(as_status(finding["status"]))):
        remedy = "" if finding["remedy"] == "NONE" else finding["remedy"]
        cells = (finding["check"], device_label(finding["device"]), finding["message"], remedy)
        yield [Text(finding["status"], STYLES[as_status(finding["status"])]), *(Text(clean(cell)) for cell in cells)]


def _cells(one: BundleFile) -> tuple[str, ...]:
    return one.file, one.state, one.wanted, one.why
