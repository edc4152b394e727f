"""What a launcher puts before the lines of its ranks, taken away.

mpirun --tag-output and --timestamp-output, srun --label, kubectl logs --prefix and --timestamps.
"""

from __future__ import annotations

import re
from typing import Iterator

from ..bundle import Data
from ..model import ParseError
from . import text as t

MAX_LINE = 4096
MANY_LINES, MIN_LINE_CHARS = 100_000, 24
"""A log of this many lines has NCCL's in it, of a hundred characters each; one of empty lines is none."""
_MPIRUN = re.compile(r"\[[^\]\s]{1,120}\]<std(?:out|err)>: ?")
_CTIME = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d \d{4}(?=\[|<std)")
_LOGGED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d) ?")
_STREAM = re.compile(r"<std(?:out|err)>: ?")
_LABEL = re.compile(r"[\w.\-]{1,64}: ?(?=\s*(?:#|\d+\s+\d+\s+[a-z]))")


def lines(data: Data) -> Iterator[str]:
    """Lines of a log, labels and the collector's stamps removed, each cut to a sane length.

    Raises ParseError as text.decode does, and for a flood of empty lines.
    """
    text = t.decode(data)
    breaks = text.count("\n") + text.count("\r")
    if breaks > MANY_LINES and len(text) < breaks * MIN_LINE_CHARS:
        raise ParseError(f"{breaks} lines with hardly anything in them: no log of NCCL or libfabric")
    for line in text.splitlines():
        if len(line) > MAX_LINE:
            line = line[:MAX_LINE]
        if line[13:14] == line[16:17] == ":":
            line = _cut(line, _LOGGED, _CTIME)
        first = line[:1]
        if first == "[":
            line = _cut(line, _MPIRUN)
        elif first == "<":
            line = _cut(line, _STREAM)
        elif first not in (" ", "#", "") and ":" in line[:65]:
            line = _cut(line, _LABEL)
        yield line


def _cut(line: str, *patterns: re.Pattern[str]) -> str:
    for pattern in patterns:
        match = pattern.match(line)
        if match:
            return line[match.end() :]
    return line
