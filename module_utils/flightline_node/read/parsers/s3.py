"""s3.json: what the reader heard from the endpoints that the inventory names."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("s3.json",)

MAX_ENDPOINTS = 256


def parse(files: Mapping[str, Data]) -> Facts:
    """{endpoints[]{endpoint status seconds region error}}: an HTTP status, or error where nothing answered."""
    rows = v.json_object(t.only(files)).get("endpoints")
    if not isinstance(rows, list) or len(v.mappings(rows)) != len(rows) or len(rows) > MAX_ENDPOINTS:
        raise ParseError("no list of endpoints in it")
    return {"endpoints": [_row(row) for row in rows]}


def _row(row: Mapping[str, Any]) -> Dict[str, Any]:
    words = {name: v.word(row.get(name)) for name in ("endpoint", "region", "error")}
    return {**words, "status": v.integer(row.get("status")), "seconds": v.real(row.get("seconds"))}
