"""JSON of node records: the half of a large fleet's judging time, hence orjson, with the standard library behind it."""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from typing import Any

try:
    import orjson
except ImportError:  # in a Lambda function, which has the standard library
    orjson = None  # type: ignore[assignment]

_SMALL = re.compile(r"\de-0\d")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?e-0\d\b')


def decode(data: bytes) -> Any:
    """A value from JSON. NaN and infinity, which JSON lacks but Python writes, become text.

    Raises ValueError for what is not JSON.
    """
    if orjson:
        with suppress(ValueError):
            return orjson.loads(data)
    return json.loads(data, parse_constant=str)


def encode_decoded(value: Any) -> str:
    """JSON on one line of a value whose numbers are finite, as those of `decode` are."""
    if orjson:
        try:
            return orjson.dumps(value).decode()
        except TypeError:  # integers beyond 64 bits, lone surrogates
            return encode(value)
    return _as_orjson(value)


def _as_orjson(value: Any) -> str:
    """The same bytes as orjson's, by the standard library: only small numbers are spelled otherwise there."""
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError):
        return encode(value)
    return _TOKEN.sub(_small, text) if _SMALL.search(text) else text


def _small(found: re.Match[str]) -> str:
    text = found[0]
    if text.startswith('"'):
        return text
    digits, _, power = text.partition("e-0")
    if power != "5":
        return f"{digits}e-{power}"
    sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    return f"{sign}0.0000{digits.replace('.', '')}"


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
