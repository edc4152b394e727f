"""What every text parser needs: decoding, numbers, the words tools use for "no value"."""

from __future__ import annotations

import re
from typing import Mapping, Optional, Union

from ...model import ParseError
from ..bundle import Data
from .lazy import Lazy

_ANSI = Lazy(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-_])")
_NOT_AVAILABLE = frozenset(
    {
        "n/a",
        "[n/a]",
        "not available",
        "[not available]",
        "not supported",
        "[not supported]",
        "requested functionality has been deprecated",
        "none available",
        "-",
    }
)
MOST_ELIDED = 256 << 10
_ELIDED = Lazy(
    r"(?m)^[\s|#>]*(?:\[?(?:\.{3,}|\u2026)\]?"
    r"|[\[<(]\W{0,4}(?:snip|cut|truncated|omitted|skipped|output omitted)\b[^\n]{0,40})[\s|]*$",
    re.IGNORECASE,
)
# Bounded: Python refuses to turn thousands of digits into an int, and 1e999 would be infinite.
_NUMBER = re.compile(r"[-+]?\d{1,20}(?:\.\d{1,20})?(?:[eE][-+]?\d{1,3})?(?!\d)")


def decode(data: Data, limit_bytes: Optional[int] = None) -> str:
    """Text of a tool's output: UTF-8 (or UTF-16 with a mark), ANSI colours removed.

    Raises ParseError for output that is empty, or that is binary: NUL bytes within are in no tool's text.
    """
    raw = bytes(data[:limit_bytes]) if limit_bytes else bytes(data)
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = raw.decode("utf-16", "replace")
    else:
        # A file system that lost power pads the last block of a file with zero bytes.
        text = raw.rstrip(b"\x00").decode("utf-8-sig", "replace")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if not text.strip():
        raise ParseError("empty output")
    if "\x00" in text:
        raise ParseError("binary data where text was expected")
    return text


def elided(data: Data) -> bool:
    """Did a person leave out lines of it, and say so by dots of their own?"""
    return _ELIDED.search(bytes(data[:MOST_ELIDED]).decode("utf-8", "replace")) is not None


def only(files: Mapping[str, Data]) -> Data:
    """The one file of a parser that reads one file."""
    return next(iter(files.values()))


def is_na(text: str) -> bool:
    """Does the tool say that there is no such value here?"""
    return text.strip().lower() in _NOT_AVAILABLE


def number(text: str) -> Union[int, float, str, None]:
    """A number with or without a unit ('45 C', '81559 MiB', '16x'); None for N/A.

    Any other text (ERR!, [Unknown Error], GPU is lost) comes back as it is, so that a
    check sees the error instead of a missing value.
    """
    text = text.strip()
    if is_na(text):
        return None
    match = _NUMBER.match(text)
    if not match or not re.fullmatch(r"\s*[A-Za-z%/°]*(?:/s)?", text[match.end() :]):
        return text
    digits = match.group(0)
    if not any(ch in digits for ch in ".eE"):
        return int(digits)
    return float(digits) if abs(float(digits)) != float("inf") else text


def value(text: str) -> Optional[str]:
    """A word as printed, None for N/A."""
    text = text.strip()
    return None if is_na(text) else text
