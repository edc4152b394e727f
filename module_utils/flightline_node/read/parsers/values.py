"""Numbers and JSON from untrusted text: bounded, so that no input is slow or raises a surprise."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Dict, Iterator, List, Optional

from ...model import ParseError
from ..bundle import Data
from . import text as t

MAX_JSON_BYTES = 4 << 20
"""A node's JSON is kilobytes; one this large is refused, because decoding takes many times its size."""
MAX_TEXT_BYTES, MAX_LINES = 16 << 20, 100_000
"""sysctl -a, the longest of the host's outputs, has some thousand lines: more is not a tool's output."""
MAX_LINE_CHARS = 1 << 16
"""No line of a host tool is longer; longer ones are passed over instead of being split."""
MAX_NOTED = 50
"""How many odd lines are kept: a parser's facts must not grow with garbage."""
_JSON_STARTS = 20

# Python before 3.11 converts long digit strings in quadratic time: 18 digits hold any size in bytes.
_INTEGER = re.compile(r"[-+]?\d{1,18}", re.ASCII)
_REAL = re.compile(r"[-+]?(?:\d{1,18}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][-+]?\d{1,3})?", re.ASCII)
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)\s*([KMGTPE]?)(?:i?B)?", re.ASCII | re.IGNORECASE)
_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)


def integer(value: object) -> Optional[int]:
    """A whole number from text or JSON, None for anything else (NaN and overlong digits included)."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value if abs(value) < 10**18 else None
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and abs(value) < 1e18 else None
    text = value.strip() if isinstance(value, str) else ""
    return int(text) if _INTEGER.fullmatch(text) else None


def real(value: object) -> Optional[float]:
    """A finite number from text or JSON, None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return float(value) if abs(value) < 10**18 else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    text = value.strip() if isinstance(value, str) else ""
    number = float(text) if _REAL.fullmatch(text) else math.nan
    return number if math.isfinite(number) else None


def size_bytes(value: object) -> Optional[int]:
    """Bytes from a number or from '3.5T' (powers of 1024, as lsblk and df -h print), None for anything else."""
    if not isinstance(value, str):
        return integer(value)
    match = _SIZE.fullmatch(value.strip())
    if not match:
        return None
    return int(float(match.group(1)) * 1024 ** (" KMGTPE".index(match.group(2).upper() or " ")))


def word(value: object) -> Optional[str]:
    """A JSON string stripped, a number as text; None for null, empty text and anything nested."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return str(value).strip() or None


def lines(data: Data) -> Iterator[str]:
    """The lines of a tool's text, overlong ones left out.

    Raises ParseError as text.decode does, and for more lines than any host tool prints.
    """
    if len(data) > MAX_TEXT_BYTES:
        raise ParseError(f"{len(data)} bytes, no tool here prints more than {MAX_TEXT_BYTES}")
    rows = t.decode(data).splitlines()
    if len(rows) > MAX_LINES:
        raise ParseError(f"{len(rows)} lines, no tool here prints more than {MAX_LINES}")
    for line in rows:
        if len(line) <= MAX_LINE_CHARS:
            yield line


def cpu_list(text: str, limit: int = 8192) -> List[int]:
    """'0-3,8' or '0 1 2' -> [0, 1, 2, 3, 8]; what is not a range is left out, as are numbers from `limit` on."""
    found: List[int] = []
    for part in text.replace(",", " ").split():
        match = _RANGE.fullmatch(part)
        if match:
            first, last = int(match.group(1)), int(match.group(2) or match.group(1))
            found += range(min(first, limit), min(last, limit - 1) + 1)
    return sorted(set(found))


def json_document(data: Data) -> Any:
    """The JSON value of a file; lines of other text before it (a tool's notes) and after it are passed over.

    Raises ParseError when there is none, or when it is larger than any tool prints.
    """
    if len(data) > MAX_JSON_BYTES:
        raise ParseError(f"{len(data)} bytes of JSON, no tool here prints more than {MAX_JSON_BYTES}")
    text = t.decode(data)
    decoder, problem = json.JSONDecoder(), "no JSON in it"
    for count, start in enumerate(_starts(text)):
        if count == _JSON_STARTS:
            break
        try:
            return decoder.raw_decode(text, start)[0]
        except (ValueError, RecursionError) as error:
            problem = f"not JSON: {str(error)[:120]}" if count == 0 else problem
    raise ParseError(problem)


def _starts(text: str) -> Iterator[int]:
    """Where a JSON value may begin: the first bracket of a line."""
    for match in re.finditer(r"(?m)^[ \t]{0,64}([\[{])", text):
        yield match.start(1)


def json_object(data: Data) -> Dict[str, Any]:
    """json_document, when it is an object. Raises ParseError for anything else."""
    value = json_document(data)
    if not isinstance(value, dict):
        raise ParseError(f"got a JSON {type(value).__name__}, wanted an object")
    return value


def mappings(value: object) -> List[Dict[str, Any]]:
    """The objects of a JSON list; [] for anything that is not a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
