"""What the Neuron driver and runtime said: kernel.log, and neuron-runtime.log (what a job printed).

Lines are found by the driver's name or the message itself, whatever stands before it.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Mapping, Match, Optional, Sequence, Tuple

from ...know.catalog.neuron import JOB_NEEDLES, KERNEL_NEEDLES, any_rule, rules
from ...model import Facts, ParseError
from ..bundle import Data
from . import kernel_lines
from . import text as t
from .log_shape import Unread

FILES = KERNEL_LOG, JOB_LOG = ("kernel.log", "neuron-runtime.log")
LATER = True
MAX_LINES, MAX_LINE_BYTES, MAX_TEXTS, MAX_CHARS = 200_000, 2048, 3, 300
_BOOT = b"Linux version "
_STARTED = re.compile(r"Neuron Driver Started with Version:\s*(\d[\d.]{1,30})")
_SAID_BY_KERNEL = re.compile(
    r"(?:\bkernel: ?(?:\[[^\]]{1,40}\] ?)?|\[ {0,8}\d{1,8}\.\d{3,9}\] ?|\"MESSAGE\" ?: ?\")neuron", re.I
)
_DRIVERS_OWN = re.compile(r"\bneuron:\w{2,60}: ")
"""The driver's form: its name and the function. The kernel's own ledger leaves these lines to this parser."""
_DEVICE = re.compile(r"\b(?:nd-id=|nd|ND |Neuron Device |MLA |nd\[)(\d{1,3})\b")
_CORE = re.compile(r"(?:nc-id=|:nc|\bNC )(\d{1,3})\b")
_SERIAL = re.compile(r"\bserial-num=([0-9a-f]{1,32})\b")
_ERROR = re.compile(r"\bERROR\s{1,8}[A-Z]{2,8}:(?!nrt_close\b|nrt_infodump\b)\w")
"""The runtime's own level. What it says of its end, and its dump of versions and settings, is no error of its own."""
_ACTION = re.compile(r"\baction=(\w{1,40})")


def parse(files: Mapping[str, Data]) -> Facts:
    """{files[], events[]{rule file device core serial action count before_boot texts[]}, driver_started, errors[]}.

    An event is one rule on one device; count: how often. before_boot: all of it is older than the last boot in the
    log. sure: the line's head was understood, so that no program merely quotes the message. driver_started: the
    version that the driver gave when it started last. errors: the runtime's lines of level ERROR that are no event.
    An empty log raises ParseError.
    """
    events: Dict[Any, Facts] = {}
    errors: List[str] = []
    unread = Unread(own=True)
    facts: Facts = {"files": sorted(files), "events": [], "errors": errors}
    for file, data in files.items():
        if not len(data):
            raise ParseError(f"{file}: empty output")
        boot = data.rfind(_BOOT)
        for at, line in _lines(data, KERNEL_NEEDLES if file == KERNEL_LOG else JOB_NEEDLES):
            started = _STARTED.search(line)
            if started:
                facts["driver_started"] = started.group(1)
            elif any_rule().search(line):
                _add(events, file, line, at < boot, file != KERNEL_LOG or _sure(line))
            elif file == KERNEL_LOG and at >= boot and _DRIVERS_OWN.search(line):
                unread.note(_text(line[line.find("neuron:") :]), known_form=True)
            elif file == JOB_LOG and _ERROR.search(line) and len(errors) < MAX_TEXTS:
                errors.append(_text(line))
    facts["events"] = list(events.values())
    return {**facts, **unread.facts()}


def _lines(data: Data, needles: Sequence[bytes]) -> Iterator[Tuple[int, str]]:
    """(offset, line) of every line with one of the needles, in order, each once."""
    nexts = {needle: data.find(needle) for needle in needles}
    done, count = -1, 0
    while count < MAX_LINES:
        there = [at for at in nexts.values() if at >= 0]
        if not there:
            return
        at = min(there)
        start = data.rfind(b"\n", max(0, at - MAX_LINE_BYTES), at) + 1 or max(0, at - MAX_LINE_BYTES)
        end = data.find(b"\n", at, at + MAX_LINE_BYTES)
        end = end if end >= 0 else min(len(data), at + MAX_LINE_BYTES)
        if at > done:
            count += 1
            yield start, bytes(data[start:end]).decode("utf-8", "replace")
        done = end
        for needle, place in nexts.items():
            if 0 <= place <= end:
                nexts[needle] = data.find(needle, end)


def _sure(line: str) -> bool:
    """Does the driver's own word begin the message? Behind words that are no known head a program may quote it."""
    if _SAID_BY_KERNEL.search(line):
        return True
    read = kernel_lines.read(line)
    return read is not None and (read.sure or read.message.lstrip().lower().startswith("neuron"))


def _add(events: Dict[Any, Facts], file: str, line: str, old: bool, sure: bool) -> None:
    rule = next(rule for rule in rules() if rule.pattern.search(line))
    device = _number(_DEVICE.search(line))
    event = events.setdefault(
        (rule.id, device, old, sure),
        {"rule": rule.id, "file": file, "device": device, "count": 0, "before_boot": old, "sure": sure, "texts": []},
    )
    event["count"] += 1
    for name, pattern in (("serial", _SERIAL), ("action", _ACTION)):
        match = pattern.search(line)
        if match:
            event[name] = match.group(1)
    core = _number(_CORE.search(line))
    if core is not None:
        event["core"] = core
    texts: List[str] = event["texts"]
    if len(texts) < MAX_TEXTS:
        texts.append(_text(line))


def _text(line: str) -> str:
    return t.decode(line.encode("utf-8", "replace").replace(b"\x00", b"")).strip()[:MAX_CHARS]


def _number(match: Optional[Match[str]]) -> Optional[int]:
    return int(match.group(1)) if match else None
