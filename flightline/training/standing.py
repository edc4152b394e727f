"""What the launcher saw of a hang, and where each rank stood when it was asked: who holds the others up?

A rank that is asked writes its threads' calls (flightline_node/train/injected.py). One that waits for others has its
last call in PyTorch's own collectives, or in a backward, in which DDP and FSDP wait for theirs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .hang import ABSENT, SILENT, Suspect

NAME = re.compile(r"stack-(\d+)\.txt")
FRAME = re.compile(r'  File "(.*)", line (\d+), in (.*)')
WAITS = re.compile(r"/torch/(?:distributed/|autograd/(?:graph|__init__)\.py:\d+ in )(?!elastic)")
MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class SeenStall:
    """The launcher's word of one node. stopped: ranks that a signal held. seen: all of that node."""

    at: float
    text: str
    stopped: frozenset[int]
    seen: frozenset[int]


def stalls(about: Mapping[str, Any]) -> list[SeenStall]:
    """Of a start.json; none where the start then ended well."""
    stall = about.get("stall")
    if not isinstance(stall, Mapping) or about.get("status") == 0:
        return []
    states = {int(one["rank"]): str(one.get("state")) for one in stall.get("ranks", ())}
    stopped = frozenset(rank for rank, state in states.items() if state == "T")
    return [SeenStall(float(stall["at"]), str(stall["text"]), stopped, frozenset(states))]


def stacks(paths: Sequence[Path]) -> dict[int, list[str]]:
    """By rank the calls of its main thread, the last one last, as `file:line in function`."""
    found: dict[int, list[str]] = {}
    for path in paths:
        name = NAME.fullmatch(path.name)
        if name:
            with path.open(encoding="utf-8", errors="replace") as file:
                frames = map(FRAME.fullmatch, file.read(MAX_BYTES).partition("\n\n")[0].splitlines())
            found[int(name[1])] = [f"{one[1]}:{one[2]} in {one[3]}" for one in frames if one]
    return found


def suspects(calls: Mapping[int, Sequence[str]], seen: frozenset[int]) -> list[Suspect]:
    """The only rank that waits for nobody while all others do, or that cannot even say where it stands.

    seen: the ranks that were asked. None is named where it is several, or all wait.
    """
    waiting = {rank for rank, of in calls.items() if of and WAITS.search(of[-1])}
    rest = sorted(seen - waiting)
    if len(rest) != 1 or not waiting or not set(calls) <= seen:
        return []
    (rank,) = rest
    others = f"{len(waiting)} others wait in {_short(calls[min(waiting)][-1])}"
    if rank not in calls:
        return [Suspect(rank, SILENT, f"did not answer where it stands; {others}")]
    return [Suspect(rank, ABSENT, f"stands in {_short((calls[rank] or ['no call'])[-1])}; {others}")]


def _short(call: str) -> str:
    place, _, function = call.partition(" in ")
    return f"{'/'.join(place.split('/')[-2:])} in {function}"
