"""JSON of node records: the half of a large fleet's judging time, hence orjson, with the standard library behind it."""

from __future__ import annotations

import json
import math
from typing import Any

import orjson


def decode(data: bytes) -> Any:
    """A value from JSON. NaN and infinity, which JSON lacks but Python writes, become text.

    Raises ValueError for what is not JSON.
    """
    try:
        return orjson.loads(data)
    except ValueError:
        return json.loads(data, parse_constant=str)


def encode_decoded(value: Any) -> str:
    """JSON on one line of a value whose numbers are finite, as those of `decode` are."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # integers beyond 64 bits, lone surrogates
        return encode(value)


def encode(value: Any) -> str:
    """Strict JSON on one line: NaN and infinity become text, unknown objects their str()."""
    try:
        return json.dumps(value, allow_nan=False, default=str)
    except ValueError:
        return json.dumps(_finite(value), allow_nan=False, default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
