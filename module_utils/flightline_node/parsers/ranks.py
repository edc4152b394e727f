"""What a launcher puts before the lines of its ranks (mpirun --tag-output, srun --label), taken away."""

from __future__ import annotations

import re
from typing import Iterator

from ..bundle import Data
from . import text as t

MAX_LINE = 4096
_MPIRUN = re.compile(r"\[[^\]\s]{1,120}\]<std(?:out|err)>: ?")
_LABEL = re.compile(r"[\w.\-]{1,64}: ?(?=\s*(?:#|\d+\s+\d+\s+[a-z]))")


def lines(data: Data) -> Iterator[str]:
    """Lines of a log, mpirun's and srun's rank labels removed, each cut to a sane length."""
    for line in t.decode(data).splitlines():
        if len(line) > MAX_LINE:
            line = line[:MAX_LINE]
        first = line[:1]
        if first == "[":
            match = _MPIRUN.match(line)
            line = line[match.end() :] if match else line
        elif first not in (" ", "#", "") and ":" in line[:65]:
            match = _LABEL.match(line)
            line = line[match.end() :] if match else line
        yield line
