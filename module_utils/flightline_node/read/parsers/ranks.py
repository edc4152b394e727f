"""What a launcher puts before the lines of its ranks, taken away.

mpirun --tag-output and --timestamp-output, srun --label, torchrun, kubectl logs --prefix and --timestamps, stern, the
CloudWatch console. What else stands before a header that is known (a padded label, docker compose's, an indent) is
learned from it and taken off every line that begins with the same, because a row is printed in pieces and its rest has
a label as well.
"""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, Tuple

from ...model import ParseError
from ..bundle import Data
from . import text as t
from .lazy import Lazy

MAX_LINE = 4096
MANY_LINES, MIN_LINE_CHARS = 100_000, 24
"""A log of this many lines has NCCL's in it, of a hundred characters each; one of empty lines is none."""
_MPIRUN = Lazy(r"\[[^\]\s]{1,120}\]<std(?:out|err)>: ?")
_CTIME = Lazy(r"[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d \d{4}(?=\[|<std)")
_LOGGED = Lazy(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d) ?")
_STREAM = Lazy(r"<std(?:out|err)>: ?")
_BARS = Lazy(r"\s{0,8}\|? ?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]{0,10}(?:Z|[+-]\d\d:\d\d) ?\| ?")
_HEADER = re.compile(
    r"# (?:nThread |nccl-tests version|Collective test starting|Using devices| +Rank +\d| +size +count )|provider: "
)
_PREFIX = Lazy(r"\s{0,80}(?:\S{1,120}[:>\]] ?|(?:[\w.\-/]{1,100} ){1,2}|[\w.\-/]{1,100} {1,40}\| ?)?")
_RANK = re.compile(
    rb"\[\d{1,9},(\d{1,6})\]<std|(\d{1,6}): ?(?:provider|    (?:fabric|domain|version|type|protocol)): ?"
)
MOST_PREFIXES = 8
_LABEL = Lazy(r"[\w.\-]{1,64}: ?(?=\s*(?:#|\d+\s+\d+\s+[a-z]))")


def lines(data: Data) -> Iterator[str]:
    """Lines of a log, labels and the collector's stamps removed, each cut to a sane length.

    Raises ParseError as text.decode does, and for a flood of empty lines.
    """
    text = t.decode(data)
    breaks = text.count("\n") + text.count("\r")
    if breaks > MANY_LINES and len(text) < breaks * MIN_LINE_CHARS:
        raise ParseError(f"{breaks} lines with hardly anything in them: no log of NCCL or libfabric")
    prefixes: Tuple[str, ...] = ()
    for line in text.splitlines():
        if len(line) > MAX_LINE:
            line = line[:MAX_LINE]
        line = _untagged(line)
        if line[:1] != "#" and ("#" in line or "provider: " in line):
            prefixes = _learn(line, prefixes)
        if prefixes and line.startswith(prefixes):
            line = line[max(len(prefix) for prefix in prefixes if line.startswith(prefix)) :]
        elif line[:1] not in (" ", "#", "", "[", "<") and ":" in line[:65]:
            line = _cut(line, _LABEL)
        yield line


def apart(data: Data) -> List[bytes]:
    """The lines of each rank, where a launcher marked them and there is more than one; else the whole."""
    found: Dict[bytes, List[bytes]] = {}
    for line in bytes(data).splitlines(keepends=True):
        rank = _RANK.match(line)
        if rank:
            found.setdefault(rank.group(1) or rank.group(2), []).append(line)
    return [b"".join(part) for part in found.values()] if len(found) > 1 else [bytes(data)]


def _untagged(line: str) -> str:
    """The line without what a collector or mpirun put before it."""
    if "|" in line[:48]:
        line = _cut(line, _BARS)
    if line[13:14] == line[16:17] == ":":
        line = _cut(line, _LOGGED, _CTIME)
    if line[:1] == "[":
        return _cut(line, _MPIRUN)
    return _cut(line, _STREAM) if line[:1] == "<" else line


def _learn(line: str, known: Tuple[str, ...]) -> Tuple[str, ...]:
    """The prefixes with what stands before this line's header, if it is one."""
    header = _HEADER.search(line)
    before = line[: header.start()] if header else ""
    if not before or before in known or len(known) == MOST_PREFIXES or not _PREFIX.fullmatch(before):
        return known
    return (*known, before)


def _cut(line: str, *patterns: Lazy) -> str:
    for pattern in patterns:
        match = pattern.match(line)
        if match:
            return line[match.end() :]
    return line
