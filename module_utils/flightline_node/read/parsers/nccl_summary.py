"""A collective's results that somebody put into a table of bars, as in reports: | size | busbw | ... |."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional, Tuple

_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s?([kmgt]?)i?b?(?:ytes?)?", re.IGNORECASE)
_RATE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s?(?:GB(?:/s|ps)?|GiB/s)?")
_BITS = re.compile(r"Gb(?:it|/s|ps)")
_SIZES, _SPEEDS = ("size", "payload", "message", "bytes"), ("busbw", "bus bw", "bus bandwidth")
Columns = Tuple[int, ...]
"""Where a row has its size, and its one or two speeds over the bus."""


def cells(line: str) -> List[str]:
    """What stands between the bars of a line; nothing where it has none."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")] if line.lstrip()[:1] == "|" else []


def columns(names: List[str]) -> Columns:
    """The columns that a heading names; () where it is no heading of such a table, or counts bits."""
    if any(_BITS.search(name) for name in names):
        return ()
    size = [at for at, name in enumerate(names) if any(word in name.lower() for word in _SIZES)]
    speeds = [at for at, name in enumerate(names) if any(word in name.lower() for word in _SPEEDS)]
    return (size[0], *speeds[:2]) if size and speeds else ()


def row(found: List[str], where: Columns) -> Optional[Dict[str, Any]]:
    """A row as nccl_tests keeps it; None where it is none."""
    if not where or max(where) >= len(found):
        return None
    size, speeds = _SIZE.fullmatch(found[where[0]]), [_RATE.fullmatch(found[at]) for at in where[1:]]
    if not size or not speeds[0]:
        return None
    factor = 1024 ** ("kmgt".index(size.group(2).lower()) + 1 if size.group(2) else 0)
    busbw = [float(speed.group(1)) if speed else None for speed in (*speeds, None)]
    return made(int(float(size.group(1)) * factor), busbw[0], busbw[1])


def made(size: int, busbw: Optional[float], in_place: Optional[float], took: Optional[float] = None) -> Dict[str, Any]:
    """A row of a table without checks."""
    row: Dict[str, Any] = {"bytes": size, "busbw": busbw, "in_place": in_place, "time": took, "best_us": took}
    return {**row, "wrong": (), "error": ()}
