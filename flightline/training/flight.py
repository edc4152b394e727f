"""PyTorch's flight recorder: what each rank was doing in its last collectives. Reads the dumps of a directory.

A dump is JSON (`_dump_nccl_trace_json`), or a pickle, which NCCL's watchdog writes at a timeout
(TORCH_FR_DUMP_TEMP_FILE). The rank is the number at the end of the file's name. A pickle can run code: here it may
hold plain values only.
"""

from __future__ import annotations

import json
import math
import pickle
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

NAME = re.compile(r"(?:flight|fr|nccl_trace|trace)[a-z_-]*?_?(?P<rank>\d+)(?:\.json)?")
ASKED = "-stall-"
"""In the name of what a rank writes in a hang (flightline_node/train/injected.py)."""
MAX_BYTES = 256 * 1024 * 1024
DONE = "completed"
TRANSFER = re.compile(r"(?P<way>send|recv) (?P<own>\d+)(?:->|<-)(?P<peer>\d+)")
EVEN = {"all_reduce", "allreduce", "broadcast", "reduce", "_all_gather_base", "_allgather_base", "_reduce_scatter_base"}
"""Collectives that every rank calls with as many elements; others may differ."""

Group = tuple[str, tuple[int, ...]]


class DumpError(ValueError):
    """A file that should be a dump and cannot be read."""


@dataclass(frozen=True)
class CollectiveCall:
    """One collective of one rank. sequence: counts the group's; what: operation and sizes; at_ns: its call.

    members: the group's ranks, () where the dump does not say. elements: of its input, where all ranks give as many.
    """

    group: str
    sequence: int
    what: str
    state: str
    at_ns: int = field(default=0, compare=False)
    members: tuple[int, ...] = ()
    elements: int | None = field(default=None, compare=False)

    @property
    def key(self) -> Group:
        """The group: two of one name may have other members."""
        return self.group, self.members

    @property
    def operation(self) -> str:
        """Its name."""
        return self.what.split(" ")[0]


@dataclass(frozen=True)
class Transfer:
    """A send to a rank, or a receive from one."""

    sending: bool
    peer: int
    state: str
    at_ns: int = 0


@dataclass(frozen=True)
class Dump:
    """The last collectives of one rank, in order, and its transfers. asked: written in a hang, for the launcher."""

    rank: int
    calls: Sequence[CollectiveCall]
    transfers: Sequence[Transfer] = ()
    members: tuple[int, ...] = ()
    asked: bool = False

    @property
    def tells_ends(self) -> bool:
        """Does its backend say what is completed? NCCL does; gloo never."""
        return DONE in {*(one.state for one in self.calls), *(one.state for one in self.transfers)}


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise DumpError(f"it asks for {module}.{name}, wanted plain values only")


def dumps(place: Path | Sequence[Path]) -> tuple[list[Dump], list[str]]:
    """All dumps of a folder, or of these files, and what could not be read; in a hang only those asked for then."""
    found, wrong = [], []
    for path in sorted(place.rglob("*")) if isinstance(place, Path) else place:
        match = NAME.fullmatch(path.name)
        if match and path.is_file():
            try:
                found.append(replace(dump(int(match["rank"]), _content(path)), asked=ASKED in path.name))
            except DumpError as error:
                wrong.append(f"{path.name}: {error}")
    return [one for one in found if one.asked] or found, wrong


def dump(rank: int, content: Any) -> Dump:
    """From a dump's content. Raises DumpError."""
    everybody = max(_groups(content).values(), key=len, default=())
    return Dump(rank, tuple(calls(content)), tuple(_transfers(content)), everybody)


def _content(path: Path) -> Any:
    if path.stat().st_size > MAX_BYTES:
        raise DumpError(f"{path.stat().st_size} bytes, wanted at most {MAX_BYTES}")
    with path.open("rb") as file:
        begin = file.read(1)
        file.seek(0)
        try:
            return json.load(file) if begin == b"{" else _Plain(file).load()
        except DumpError:
            raise
        except Exception as error:  # a torn pickle raises anything
            raise DumpError(f"neither JSON nor a pickle: {type(error).__name__}") from None


def calls(content: Any) -> list[CollectiveCall]:
    """The collectives of a dump; sends and receives between two ranks have numbers of their own and are left out."""
    groups = _groups(content)
    return [_call(entry, groups) for entry in _entries(content) if not entry.get("is_p2p")]


def _entries(content: Any) -> list[Mapping[str, Any]]:
    entries = content.get("entries") if isinstance(content, Mapping) else None
    if not isinstance(entries, Sequence):
        raise DumpError("no list of entries, wanted a dump of the flight recorder")
    return [entry for entry in entries if isinstance(entry, Mapping)]


def _groups(content: Any) -> dict[str, tuple[int, ...]]:
    """Ranks of each process group by its name; pg_config has them as text."""
    config = content.get("pg_config") if isinstance(content, Mapping) else None
    found = {}
    for name, about in (config if isinstance(config, Mapping) else {}).items():
        ranks = about.get("ranks") if isinstance(about, Mapping) else None
        found[str(name)] = tuple(int(rank) for rank in re.findall(r"\d+", str(ranks)))
    return found


def _group(entry: Mapping[str, Any], groups: Mapping[str, tuple[int, ...]]) -> tuple[str, tuple[int, ...]]:
    group = entry.get("process_group")
    names = list(map(str, group)) if isinstance(group, Sequence) and not isinstance(group, str) else [str(group)]
    # Name and description: the same on every rank of the group.
    return "/".join(names), groups.get(names[0], ())


def _call(entry: Mapping[str, Any], groups: Mapping[str, tuple[int, ...]]) -> CollectiveCall:
    name, members = _group(entry, groups)
    sequence = entry.get("collective_seq_id")
    if not isinstance(sequence, int):
        raise DumpError(f"an entry with collective_seq_id {sequence!r}, wanted a number")
    operation, sizes = str(entry.get("profiling_name")).split(":")[-1], entry.get("input_sizes")
    elements = None
    if operation in EVEN and isinstance(sizes, Sequence):
        elements = sum(math.prod(size) for size in sizes if isinstance(size, Sequence))
    return CollectiveCall(
        name, sequence, f"{operation} {sizes}", str(entry.get("state")), int(entry.get("time_created_ns") or 0),
        members, elements,
    )  # fmt: skip


def _transfers(content: Any) -> list[Transfer]:
    """Sends and receives; their names have ranks of the group, not of the run."""
    groups, found = _groups(content), []
    for entry in _entries(content):
        match = TRANSFER.search(str(entry.get("profiling_name")))
        _, members = _group(entry, groups)
        if entry.get("is_p2p") and match and (not members or int(match["peer"]) < len(members)):
            peer = members[int(match["peer"])] if members else int(match["peer"])
            at = int(entry.get("time_created_ns") or 0)
            found.append(Transfer(match["way"] == "send", peer, str(entry.get("state")), at))
    return found
