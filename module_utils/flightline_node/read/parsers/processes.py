"""processes.json: process counts, the stuck and the zombies, read from /proc by the probe."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("processes.json",)

_MAX_NAME_CHARS = 64
_MAX_STACK_LINES = 8


def parse(files: Mapping[str, Data]) -> Facts:
    """{total, init_seen, states{}, watched_s, stuck_count, stuck[], zombie_count, zombies[]}.

    stuck: {pid name parent age_s wchan stack[]}, zombies: {pid name parent}. Names are a user's to choose:
    characters that cannot be printed are replaced. Raises ParseError without the counts.
    """
    document = v.json_object(t.only(files))
    total, stuck, zombies = (v.integer(document.get(key)) for key in ("total", "stuck_count", "zombie_count"))
    if total is None or stuck is None or zombies is None:
        raise ParseError(f"no process counts in it, keys {sorted(map(str, document))[:8]}")
    states = document.get("states")
    counts = {str(key): v.integer(value) for key, value in states.items()} if isinstance(states, dict) else {}
    return {
        "total": total,
        "init_seen": document.get("init_seen") is True,
        "states": counts,
        "watched_s": v.real(document.get("watched_s")),
        "stuck_count": stuck,
        "stuck": [_process(row) for row in v.mappings(document.get("stuck"))],
        "zombie_count": zombies,
        "zombies": [_process(row) for row in v.mappings(document.get("zombies"))],
    }


def _process(row: Dict[str, Any]) -> Facts:
    found: Facts = {"pid": v.integer(row.get("pid")), "name": _printable(row.get("name"))}
    parent = row.get("parent")
    found["parent"] = parent if isinstance(parent, int) and not isinstance(parent, bool) else _printable(parent)
    age_s = v.real(row.get("age_s"))
    if age_s is not None:
        found["age_s"] = age_s
    if "wchan" in row:
        found["wchan"] = _printable(row["wchan"])
    if isinstance(row.get("stack"), list):
        lines: List[Any] = row["stack"]
        found["stack"] = [_printable(line) for line in lines[:_MAX_STACK_LINES]]
    return found


def _printable(value: object) -> str:
    word = v.word(value) or "?"
    return "".join(ch if ch.isprintable() else "\N{REPLACEMENT CHARACTER}" for ch in word[:_MAX_NAME_CHARS])
