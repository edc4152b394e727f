"""PyTorch's flight recorder: what each rank was doing in its last collectives. Reads the dumps of a directory.

A dump is JSON (`_dump_nccl_trace_json`), or a pickle, which NCCL's watchdog writes at a timeout
(TORCH_FR_DUMP_TEMP_FILE). The rank is the number at the end of the file's name. A pickle can run code: here it may
hold plain values only.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAME = re.compile(r"(?:flight|fr|nccl_trace|trace)[a-z_-]*?_?(?P<rank>\d+)(?:\.json)?")
MAX_BYTES = 256 * 1024 * 1024
DONE = "completed"


class DumpError(ValueError):
    """A file that should be a dump and cannot be read."""


@dataclass(frozen=True)
class CollectiveCall:
    """One collective of one rank. sequence: counts the group's; what: operation and sizes; at_ns: its call."""

    group: str
    sequence: int
    what: str
    state: str
    at_ns: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Dump:
    """The last collectives of one rank, in order."""

    rank: int
    calls: Sequence[CollectiveCall]


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise DumpError(f"it asks for {module}.{name}, wanted plain values only")


def dumps(folder: Path) -> tuple[list[Dump], list[str]]:
    """All dumps of a folder, and what could not be read."""
    found, wrong = [], []
    for path in sorted(folder.rglob("*")):
        match = NAME.fullmatch(path.name)
        if match and path.is_file():
            try:
                found.append(Dump(int(match["rank"]), tuple(calls(_content(path)))))
            except DumpError as error:
                wrong.append(f"{path.name}: {error}")
    return found, wrong


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
    entries = content.get("entries") if isinstance(content, Mapping) else None
    if not isinstance(entries, Sequence):
        raise DumpError("no list of entries, wanted a dump of the flight recorder")
    return [_call(entry) for entry in entries if isinstance(entry, Mapping) and not entry.get("is_p2p")]


def _call(entry: Mapping[str, Any]) -> CollectiveCall:
    group = entry.get("process_group")
    # Name and description: the same on every rank of the group.
    name = "/".join(map(str, group)) if isinstance(group, Sequence) else str(group)
    sequence = entry.get("collective_seq_id")
    if not isinstance(sequence, int):
        raise DumpError(f"an entry with collective_seq_id {sequence!r}, wanted a number")
    what = f"{str(entry.get('profiling_name')).split(':')[-1]} {entry.get('input_sizes')}"
    return CollectiveCall(name, sequence, what, str(entry.get("state")), int(entry.get("time_created_ns") or 0))
