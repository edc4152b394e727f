"""df: sizes (-k, -P, -h, -T and plain) and inodes (-i), merged by mount point."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ...model import Facts, ParseError
from ..bundle import Data
from . import values as v

FILES = ("df.txt", "df-inodes.txt")

_PERCENT = re.compile(r"(\d{1,4})%|-", re.ASCII)
_BLOCKS = re.compile(r"(\d{0,6}[KMG]?)B?-blocks", re.ASCII)

_Row = Tuple[List[str], str]
"""The words before the mount point, and the mount point."""


def parse(files: Mapping[str, Data]) -> Facts:
    """File systems by mount point, and df's complaints.

    {filesystems[]{mount filesystem type size_kib used_kib available_kib used_percent inodes
    inodes_used_percent}, errors[]}.

    A percentage printed as '-' is None. type is there when df printed it. errors holds df's own
    complaints ('df: /fsx: Stale file handle').
    """
    found: Dict[str, Dict[str, Any]] = {}
    errors: List[str] = []
    for data in files.values():
        _read(data, found, errors)
    if not found and not errors:
        raise ParseError("no file system in it: not df's output")
    return {"filesystems": list(found.values()), "errors": errors}


def _read(data: Data, found: Dict[str, Dict[str, Any]], errors: List[str]) -> None:
    unit, typed, inodes, pending = 1.0, False, False, []  # type: float, bool, bool, List[str]
    for line in v.lines(data):
        words = line.split()
        if line.startswith("df: "):
            errors += [line] if len(errors) < v.MAX_NOTED else []
        elif words[:1] == ["Filesystem"] and len(words) > 2:
            unit, typed, inodes = _unit(words), "Type" in words[1:3], "IFree" in words
        elif words:
            row = _row(line, words, pending, typed)
            # A long device name stands alone on its line; its numbers follow on the next.
            pending = [] if row else (words if len(words) in (1, 2) else [])
            if row:
                _add(found, row, unit, typed, inodes)


def _unit(header: List[str]) -> float:
    """KiB per printed block; 0 means sizes with a suffix (-h)."""
    for word in header:
        match = _BLOCKS.fullmatch(word)
        if match:
            size = match.group(1)
            return (v.size_bytes(size if size[:1].isdigit() else "1" + size) or 1024) / 1024
    return 0.0 if "Size" in header else 1.0


def _row(line: str, words: List[str], pending: List[str], typed: bool) -> Optional[_Row]:
    wanted = 5 if typed else 4  # words before the percentage: name, type, size, used, available
    joined = pending + words if pending and line[:1].isspace() else words
    skipped = len(joined) - len(words)
    for at in range(wanted, len(joined) - 1):
        if _PERCENT.fullmatch(joined[at]) and joined[at + 1].startswith("/"):
            # A mount point may hold spaces: it is the rest of the line.
            return joined[: at + 1], line.split(None, at - skipped + 1)[-1].rstrip()
    return None


def _add(found: Dict[str, Dict[str, Any]], row: _Row, unit: float, typed: bool, inodes: bool) -> None:
    words, mount = row
    match = _PERCENT.fullmatch(words[-1])
    percent = int(match.group(1)) if match and match.group(1) else None
    entry = found.setdefault(mount, {"mount": mount})
    entry["filesystem"] = " ".join(words[: -5 if typed else -4])
    if typed:
        entry["type"] = words[-5]
    if inodes:
        entry.update(inodes=v.integer(words[-4]), inodes_used_percent=percent)
        return
    size, used, available = (_kib(text, unit) for text in words[-4:-1])
    entry.update(size_kib=size, used_kib=used, available_kib=available, used_percent=percent)


def _kib(text: str, unit: float) -> Optional[int]:
    if unit == 0.0:
        amount = v.size_bytes(text)
        return None if amount is None else amount // 1024
    blocks = v.integer(text)
    return None if blocks is None else int(blocks * unit)
