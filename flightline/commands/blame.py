"""flightline blame: which rank, GPU and node a training run failed, hung or is slow by."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from flightline_node.train import ras

from ..console import EXIT_BROKEN, EXIT_GO, EXIT_NO_GO, Console
from ..report.text import clean
from ..tell.digest import Alert, Digest
from ..training import evidence, flight, journals
from ..training.blame import NOT_KNOWN, SLOW, UNKNOWN, RankBlame, blames, suspects
from . import options

CHECK = "training"


@dataclass(frozen=True)
class Case:
    """What was read and what follows from it. over: the launcher says of the last start that the run is done."""

    ranks: int
    dumps: int
    logs: int
    found: list[RankBlame]
    unread: list[str]
    over: bool

    @property
    def json(self) -> dict[str, Any]:
        """For scripts."""
        facts = {"schema": "flightline-blame/1", "ranks": self.ranks, "logs": self.logs}
        return {**facts, "blames": [asdict(one) for one in self.found], "unreadable": self.unread}


def read(folder: Path, living: str = "") -> Case:
    """A run's leavings. living: the address of its RAS, while it lives."""
    files = evidence.files(folder)
    ranks, torn = journals.read(files)
    dumps, wrong = flight.dumps(files)
    said = evidence.read(files, max((rank.world for rank in ranks.values()), default=0))
    if living:
        try:
            text = ras.asked(living)
        except TimeoutError as error:
            # Silence is no health.
            said.lags.append(ras.Lag(ras.OPEN, None, None, str(error)))
            text = str(error)
        said.lags += ras.read(text)
        said.files += bool(text)
        torn += [] if text else [f"RAS at {living}: nobody listens there"]
    found = blames(ranks, dumps, said)
    if not found and (status := evidence.failed(files)):
        # Evidence that is cut off or gone is no sign that nobody failed.
        why = f"the launcher's start ended with {status}, and nothing that is left of it says who"
        found = [RankBlame(UNKNOWN, None, "", None, why, own=True, cause=NOT_KNOWN)]
    return Case(len(ranks), len(dumps), said.files, found, wrong + torn, evidence.done(files))


@click.command(
    cls=options.Command,
    example="flightline blame /fsx/logs/llama-1\nflightline blame slurm-1234.out\n"
    "flightline blame /fsx/logs/llama-1 --json | jq -r '.blames[].node'\n"
    "flightline blame /var/log/flightline/train/llama-1 --follow --ras localhost:28028\n"
    "flightline blame /fsx/logs/llama-1 --quarantine -i inventory/aws_ec2.yml",
    epilog="Exit status: 0 nobody is to blame, 1 somebody is, or it is not known who, 2 nothing could be read, or a "
    "node not reached.",
)
@click.argument("folder", type=click.Path(exists=True, path_type=Path), metavar="DIR|FILE")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--follow", is_flag=True, help="Look again and again, say what is new, until the run is done.")
@click.option("--every", type=click.FloatRange(0.05, 3600), default=10.0, help="With --follow: seconds; 10.")
@click.option(
    "--ras", "living", metavar="HOST:PORT", default="", help="Ask NCCL of the living job too: localhost:28028."
)
@click.option("--quarantine", is_flag=True, help="Take nodes that hung, vanished or are slow out of service, with why.")
@click.option("-i", "--inventory", multiple=True, metavar="PATH", help="With --quarantine: where the nodes stand.")
@options.publish
@click.pass_context
def command(
    ctx: click.Context, folder: Path, as_json: bool, follow: bool, every: float, living: str, quarantine: bool,
    inventory: tuple[str, ...], publish_pairs: tuple[str, ...],
) -> None:  # fmt: skip
    """Read a run's logs, journals, torchrun's reports and error files, and flight recorder dumps: who is to blame?"""
    if quarantine and not inventory:
        raise click.UsageError("--quarantine: saw no inventory; wanted: one that has the nodes; do: add -i PATH")
    tell = _teller(publish_pairs, folder) if follow else None
    case = read(folder, living)
    if not follow and not (case.ranks or case.dumps or case.logs or case.found):
        message = f"{folder}: saw no journal (rank-*.jsonl), log, error.json or flight recorder dump of a run"
        click.echo(f"flightline: {clean(message)}; do: name the directory that --journal or --log-dir named", err=True)
        ctx.exit(EXIT_BROKEN)
    known: set[tuple[Any, ...]] = set()
    before: set[tuple[Any, ...]] = set()
    away = 0
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            # Of a run that lives what is seen twice: a rank's last words may be on their way.
            sure = before if follow and not case.over else {_key(one) for one in case.found}
            before = {_key(one) for one in case.found}
            new = [one for one in case.found if _key(one) in sure - known]
            known |= {_key(one) for one in new}
            if not follow or new:
                click.echo(json.dumps(case.json, indent=None if follow else 1)) if as_json else _show(case, new)
                away += _take_out(new, folder, inventory) if quarantine else 0
            if tell and new:
                tell(new)
            if not follow or case.over:
                break
            time.sleep(every)
            case = read(folder, living)
    ctx.exit(EXIT_BROKEN if away else EXIT_NO_GO if known else EXIT_GO)


def _key(one: RankBlame) -> tuple[Any, ...]:
    """What makes it the same finding later."""
    return one.kind, one.rank, one.node, one.cause


def _teller(pairs: tuple[str, ...], folder: Path) -> Callable[[list[RankBlame]], None] | None:
    """Tells people of findings, by the channels that --publish and FLIGHTLINE_PUBLISH name; None where none is."""
    from ..cloud import clients, publish_settings, telling
    from ..healing.journal.notice import Known

    settings = publish_settings.publish(options.publishing(pairs))
    if settings is None or not settings.tells:
        return None
    voice = telling.voice_of(settings, clients.Clients(settings.region))

    def tell(found: list[RankBlame]) -> None:
        alerts = tuple(
            Alert(one.node or "unknown", CHECK, "WARN" if one.own else "FAIL", _words(one), one.node,
                  device="" if one.device is None else f"GPU {one.device}")
            for one in found
        )  # fmt: skip
        digest = Digest(f"Flightline {settings.scope}: training run {folder.name}", alerts, scope=settings.scope)
        outcome = voice.tell(digest, Known({}, digest.key))
        for why in (*outcome.waits.values(), *outcome.refused.values()):
            click.echo(f"flightline: warning: nobody was told: {clean(why)}", err=True)

    return tell


def _take_out(found: list[RankBlame], folder: Path, inventory: tuple[str, ...]) -> int:
    """Quarantine the nodes to blame, and say it; how many could not be."""
    from ..healing.steps.nodes import AnsibleNodes
    from ..healing.steps.ports import EdgeError

    nodes, away, ill = AnsibleNodes(inventory), 0, suspects(found, str(folder))
    if found and not ill:
        click.echo(
            "flightline: no node is taken out: it is the program's own, or more than two nodes' at once", err=True
        )
    for node, findings in ill.items():
        try:
            nodes.mark(node, 0, f"flightline: {findings[0]['message']}"[:300], findings, "flightline-blame")
            click.echo(f"flightline: {clean(node)} is in quarantine until a preflight proves it", err=True)
        except EdgeError as error:
            away += 1
            click.echo(f"flightline: {clean(str(error))}; do: drain the node by hand", err=True)
    return away


def _words(one: RankBlame) -> str:
    nameless = "not known who" if one.kind == UNKNOWN else "all, or not known who"
    nameless = "a node" if one.kind == SLOW and one.node else nameless
    who = nameless if one.rank is None else f"rank {one.rank}"
    device = "" if one.device is None else f", GPU {one.device}"
    where = f" ({one.node or 'node not known'}{device})" if one.rank is not None or one.node else ""
    step = f" at step {one.step}" if one.step is not None else ""
    return f"{one.kind:<9} {clean(who + where)}{step}: {clean(one.why)} [{one.cause}]"


def _show(case: Case, found: list[RankBlame]) -> None:
    console = Console(markup=False, highlight=False, soft_wrap=True)
    for one in found:
        console.print(Text(f"  {_words(one)}", "red"))
    for line in case.unread:
        console.print(Text(f"  unread    {clean(line)}", "yellow"))
    named = sum(one.kind != UNKNOWN for one in found)
    verdict = f"{named} to blame" if named else "not known who is to blame" if found else "nobody to blame"
    read = f"{case.ranks} journals, {case.logs} logs and {case.dumps} flight recorder dumps"
    console.print(f"{verdict}; read {read}")
