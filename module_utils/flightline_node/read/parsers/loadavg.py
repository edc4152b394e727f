"""/proc/loadavg."""

from __future__ import annotations

from typing import Mapping

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("loadavg.txt",)


def parse(files: Mapping[str, Data]) -> Facts:
    """{load1, load5, load15, runnable, processes}: load averages (runnable tasks) and task counts."""
    words = t.decode(t.only(files), 4096).split()
    tasks = words[3].split("/") if len(words) > 3 else []
    loads = [v.real(word) for word in words[:3]]
    counts = [v.integer(word) for word in tasks]
    if len(counts) != 2 or None in loads or None in counts:
        raise ParseError(f"wanted '0.10 0.20 0.30 1/234 5678', got {' '.join(words)[:80]!r}")
    names = ("load1", "load5", "load15", "runnable", "processes")
    return dict(zip(names, [*loads, *counts]))
