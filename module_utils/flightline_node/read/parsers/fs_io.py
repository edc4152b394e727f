"""fs-io.json: what our own write-and-read test found on each file system (active/fs_io.py)."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("fs-io.json",)
LATER = True

_WORDS = ("mount", "fstype", "kind", "error", "refused", "wrong")
_NUMBERS = ("written_bytes", "read_bytes", "write_mb_s", "read_mb_s")
_MAX_TARGETS, _MAX_CHARS = 64, 300


def parse(files: Mapping[str, Data]) -> Facts:
    """{targets[]{mount fstype kind written_bytes read_bytes write_mb_s read_mb_s direct verified error refused wrong}}.

    kind: instance-store, lustre or named (by the site). refused: why nothing was written. error: what failed. wrong:
    where the content read differs from the content written. Keys that were not written are absent.
    """
    document = v.json_object(t.only(files))
    rows = document.get("targets")
    if not isinstance(rows, list) or len(rows) > _MAX_TARGETS:
        raise ParseError("no targets: not the file-system test's JSON")
    return {"targets": [_target(row) for row in v.mappings(rows)]}


def _target(row: Dict[str, Any]) -> Facts:
    words = {name: v.word(row.get(name)) for name in _WORDS}
    target: Facts = {name: word[:_MAX_CHARS] for name, word in words.items() if word}
    target.update((name, v.real(row.get(name))) for name in _NUMBERS if name in row)
    target.update((name, row.get(name) is True) for name in ("direct", "verified") if name in row)
    return target
