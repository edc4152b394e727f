"""/proc/uptime."""

from __future__ import annotations

from typing import Mapping

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("uptime.txt",)


def parse(files: Mapping[str, Data]) -> Facts:
    """{uptime_s}: seconds since the kernel started."""
    words = t.decode(t.only(files), 4096).split()
    seconds = v.real(words[0])
    if seconds is None or seconds < 0 or len(words) > 2:
        raise ParseError(f"wanted '350735.47 234388.90', got {' '.join(words)[:80]!r}")
    return {"uptime_s": seconds}
