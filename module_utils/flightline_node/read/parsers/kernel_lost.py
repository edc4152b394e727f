"""Kernel messages in lines whose head could not be read, or that run together with another message.

Such a line is not passed over: where what stands before the message can only be a head, it is read as usual; where it
is another program's line, it is left alone; else it goes to the list `unsplit`, with the list it may belong to, and
the check of that list cannot pass.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Iterator, List, Match, NamedTuple, Optional, Sequence

from ..bundle import Data
from . import kernel_heads, kernel_lines
from .kernel_events import BY_NEEDLE, NEEDLES, NVRM, SXID, EventPattern
from .kernel_lines import KernelLine
from .lazy import Lazy

UNSPLIT = "unsplit"
_NO_FAULT = frozenset({"", "boots", "gpu_uuids", "driver_loads"})
_NAMES_ITS_FAULT = frozenset({"xids", "sxids", "unread_xids", "unread_sxids"})
"""Of these so much stands in the message itself that it is looked for inside other kernel messages too."""

STRONG = frozenset(NEEDLES.index(needle) for needle in (*NVRM, *SXID))
XID = "NVRM: Xid ("
_START = Lazy(r"(?:^|(?<=[\s:\]>|;)}\"'=,]))\S")
_MOST_STARTS = 40
_BEFORE_CHARS = 300
"""A needle stands so close to its message's beginning; XFS and AER name device and severity before it."""

_LONG_LINE_BYTES = 64 << 10


class Lost(NamedTuple):
    """A message found inside a line."""

    line: KernelLine
    rule: EventPattern
    match: Match[str]


def find(line: KernelLine, text: str, needle: int) -> Optional[Lost]:
    """The message of a needle's rules somewhere in a line; None where there is none, or it is another program's."""
    text = line.message if line.sure else text
    rules = [rule for rule in _likely(BY_NEEDLE[needle], text) if not line.sure or rule.name in _NAMES_ITS_FAULT]
    for start in _starts(text, NEEDLES[needle].decode()):
        if kernel_heads.begins_with_mark(text, start):
            continue  # a shape that allows any word in front must not take the kernel's own name for one
        found = _first(rules, text, start)
        if found:
            voice = kernel_heads.run_together if line.sure else kernel_heads.voice
            return _judged(found, voice(text[:start]), line, text[:start])
    return None


def in_a_long_line(data: Data, at: int, needle: int) -> Optional[Lost]:
    """As find(), for a needle that stands too far into its line for the line to be split."""
    begin = data.rfind(b"\n", max(0, at - _LONG_LINE_BYTES), at) + 1
    if kernel_lines.read(kernel_lines.text_of(bytes(data[begin : begin + 200]))) is None:
        return None
    base = max(0, at - _BEFORE_CHARS)
    text = bytes(data[base : at + 600]).decode("utf-8", "replace").split("\n")[0]
    rules = _likely(BY_NEEDLE[needle], text)
    for start in _starts(text, NEEDLES[needle].decode()):
        found = _first(rules, text, start)
        if found:
            return _judged(found, kernel_heads.UNCLEAR, KernelLine(text), "")
    return None


class _Found(NamedTuple):
    rule: EventPattern
    match: Match[str]
    message: str


def _likely(rules: Sequence[EventPattern], text: str) -> List[EventPattern]:
    """The rules that can match anywhere in a line: asked once, because a long line has many places to begin at."""
    return [rule for rule in rules if any(hint in text for hint in rule.hints)]


def _first(rules: Sequence[EventPattern], text: str, start: int) -> Optional[_Found]:
    message = text[start:]
    for rule in rules:
        match = rule.pattern.match(message)
        if match:
            return _Found(rule, match, message)
    return None


def _starts(text: str, needle: str) -> Iterator[int]:
    """Where the message of a needle can begin: at a word, at or before the needle, or at the needle itself."""
    at = text.find(XID) if needle == "NVRM" else -1  # before it may stand another message of NVRM's
    at = at if at >= 0 else text.find(needle)
    if at < 0:  # a colour stood in its middle
        return
    places: List[int] = [match.start() for match in _START.finditer(text, max(0, at - _BEFORE_CHARS), at + 1)]
    yield from places[-_MOST_STARTS:]
    if at not in places:
        yield at


def _judged(found: _Found, voice: str, line: KernelLine, prefix: str) -> Optional[Lost]:
    if voice == kernel_heads.OTHER or (voice == kernel_heads.UNCLEAR and found.rule.name in _NO_FAULT):
        return None
    rule = found.rule if voice == kernel_heads.KERNEL else _unsplit(found.rule)
    uptime = line.uptime if line.uptime is not None else kernel_heads.uptime_in(prefix)
    return Lost(line._replace(message=found.message, uptime=uptime), rule, found.match)


@lru_cache(maxsize=None)
def _unsplit(rule: EventPattern) -> EventPattern:
    return replace(rule, name=UNSPLIT, extra=(*rule.extra, ("list", rule.name)))
