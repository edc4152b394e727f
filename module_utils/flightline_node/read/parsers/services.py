"""systemd's services: list-units as JSON or as a table, systemctl show, or a plain {name: state}."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v
from .jsonhead import holds_json

FILES = ("services.json",)

Unit = Dict[str, Optional[str]]
_MARKS = frozenset("\u25cf\u25cb\u00d7\u21bb*x")
"""Before a unit that failed, or is not there: a dot, a cross, or their ASCII forms."""
_SHOW = {"LoadState": "load", "ActiveState": "active", "SubState": "sub"}


def parse(files: Mapping[str, Data]) -> Facts:
    """{units{name: {load active sub}}}: names with their suffix ('.service' where none was given)."""
    data = t.only(files)
    head = t.decode(data, 4096)
    units: Dict[str, Unit] = {}
    if holds_json(data):
        units.update(_json(v.json_document(data)))
    elif "ActiveState=" in head or "LoadState=" in head:
        units.update(_show(data))
    else:
        # systemd before 246 takes --output=json and prints its table all the same.
        units.update(_table(data))
    if not units:
        raise ParseError("no unit in it: not systemctl's output")
    return {"units": units}


def _named(name: str) -> str:
    return name if "." in name else name + ".service"


def _unit(load: Optional[str], active: Optional[str], sub: Optional[str]) -> Unit:
    found = {"load": load, "active": active, "sub": sub}
    return {key: value for key, value in found.items() if value is not None}


def _json(document: object) -> Iterator[Tuple[str, Unit]]:
    if isinstance(document, dict):
        inner = document.get("units")
        pairs: Dict[str, Any] = inner if isinstance(inner, dict) else document
        for name, state in pairs.items():
            if isinstance(state, dict):
                yield _named(name), _unit(*(v.word(state.get(key)) for key in ("load", "active", "sub")))
            elif v.word(state):
                yield _named(name), _unit(None, v.word(state), None)
    for row in v.mappings(document):
        unit_name = v.word(row.get("unit"))
        if unit_name:
            yield _named(unit_name), _unit(*(v.word(row.get(key)) for key in ("load", "active", "sub")))


def _show(data: Data) -> Iterator[Tuple[str, Unit]]:
    block: Unit = {}
    name = ""
    for line in [*v.lines(data), ""]:
        key, equals, value = line.partition("=")
        if not line.strip():
            if name:
                yield _named(name), block
            block, name = {}, ""
        elif equals and key == "Id":
            name = value.strip()
        elif equals and key in _SHOW:
            block[_SHOW[key]] = value.strip()


def _table(data: Data) -> Iterator[Tuple[str, Unit]]:
    for line in v.lines(data):
        words = line.split(None, 5)
        if words and words[0] in _MARKS:
            del words[0]
        if (
            len(words) >= 4
            and "." in words[0]
            and words[1] in ("loaded", "not-found", "masked", "error", "bad-setting")
        ):
            yield words[0], _unit(words[1], words[2], words[3])
