"""What is there to be copied: the no-go hosts as other tools want them, safe to paste into a shell.

A host's name comes from an inventory, and an inventory may be generated from what anybody wrote into a tag. So a name
goes into a command only when no shell, Ansible pattern or Slurm host list could read anything else into it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from flightline.fleet.result import Report
from flightline_node.model import LEVELS, Verdict
from flightline_node.watch import claim

from .text import NUMBERED, clean, host_ranges

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")
_RANGE = re.compile(r"(.*)\[([0-9]+)-([0-9]+)\](.*)")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.:+ -]")
MOST_REASON_CHARS = claim.MOST_CHARS


@dataclass(frozen=True)
class Copies:
    """The same hosts three ways. unnamed: how many have a name that is not safe in a command, and are in none."""

    limit: str
    drain: str
    hosts: str
    unnamed: int = 0


def copies(report: Report) -> Copies | None:
    """The no-go hosts of a run; None when there is none."""
    bad = [row.host for row in report.rows if row.verdict is Verdict.NO_GO]
    return of_hosts(bad, no_go_claim(report.run.id, report.run.level)) if bad else None


def no_go_claim(run: str, level: str) -> str:
    """The reason of a drain that a person makes by our command: our claim, which healing goes on with."""
    deepest = level if level in LEVELS else LEVELS[-1]
    return claim.Claim("node", "no-go", claim.PREFLIGHT, deepest, claim.NO_GO, run).text


def is_plain(host: str) -> bool:
    """Is it a name that a shell, an Ansible pattern and a Slurm host list take for just that?"""
    return _PLAIN.fullmatch(host) is not None


def of_hosts(hosts: Iterable[str], reason: str) -> Copies:
    """The hosts for `--limit`, for Slurm's drain with a reason, and plainly."""
    named = list(dict.fromkeys(hosts))
    safe = [host for host in named if is_plain(host)]
    why = _UNSAFE.sub("_", clean(reason))[:MOST_REASON_CHARS]
    nodes, limit = shlex.quote(slurm_list(safe)), shlex.quote(",".join(safe))
    drain = f"scontrol update NodeName={nodes} State=DRAIN Reason={shlex.quote(why)}"
    return Copies(f"--limit {limit}" if safe else "", drain if safe else "", " ".join(safe), len(named) - len(safe))


def slurm_list(hosts: Iterable[str]) -> str:
    """Slurm's host list: 'gpu-[001-003,007],head'. Names that differ in one number share their brackets."""
    joined: dict[tuple[str, str], list[str]] = {}
    for text, _ in host_ranges(hosts):
        before, numbers, after = _parts(text)
        joined.setdefault((before, after), []).append(numbers)
    return ",".join(_bracketed(before, numbers, after) for (before, after), numbers in joined.items())


def _parts(text: str) -> tuple[str, str, str]:
    found = _RANGE.fullmatch(text)
    if found:
        return found.group(1), f"{found.group(2)}-{found.group(3)}", found.group(4)
    single = NUMBERED.fullmatch(text)
    return (single.group(1) or "", single.group(2), single.group(3) or "") if single else (text, "", "")


def _bracketed(before: str, numbers: list[str], after: str) -> str:
    alone = len(numbers) == 1 and "-" not in numbers[0]
    return f"{before}{numbers[0]}{after}" if alone else f"{before}[{','.join(numbers)}]{after}"
