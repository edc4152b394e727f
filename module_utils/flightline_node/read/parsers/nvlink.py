"""nvidia-smi nvlink -s (state and rate of each link) and nvidia-smi nvlink -e (error counters).

The rate is one direction of one link. Counter names differ: Replay, Recovery and CRC Errors
up to Hopper; Malformed packet Errors, Link recovery ..., FEC bins, BER from NVLink 5 (Blackwell).
Up to driver 470 a counter's value stands before its name: "Link 0: 0 replay errors".
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Dict, Iterable, List, Mapping, Optional, Union

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from .lazy import Lazy
from .nvidia_messages import Messages, decode
from .nvidia_smi_fields import snake, word

FILES = ("nvlink-status.txt", "nvlink-errors.txt")

STATUS, ERRORS = "nvlink-status.txt", "nvlink-errors.txt"
MAX_GPUS = 1024

_GPU = re.compile(r"GPU (\d{1,4}):\s*(.*)")
_LINK = re.compile(r"Link (\d{1,4}):\s*(.*)")
# -e, -c, -R and -gt print a name before the value, -e of driver 470 after it.
_OTHER_OPTION = re.compile(r"Link \d{1,4}(?:,|:.{1,200}:|: \d{1,20} [A-Za-z ]{1,40}$)")
_COUNT = re.compile(r"(\d{1,20}) ([A-Za-z ]{1,40})")
_RATE = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) GB/s")
_INACTIVE = frozenset({"<inactive>", "inactive", "<down>", "down", "<disabled>", "disabled", "<off>", "off"})
_UNSUPPORTED = Lazy(r"not (?:have or )?support|not supported", re.IGNORECASE)
_BER_FLOOR = 1e-250  # "15e-255" is how NVLink 5 prints a bit error rate of 0

Value = Union[int, float, str, None]


@dataclass
class _GpuLinks:
    index: int
    name: str = ""
    uuid: str = ""
    states: Optional[Dict[str, Union[float, str]]] = None  # by link: the rate, "" when inactive, other text
    counters: Optional[Dict[str, Dict[str, Value]]] = None
    messages: List[str] = field(default_factory=list)
    dark: List[str] = field(default_factory=list)  # what the error counters' file says of links that are down


def parse(files: Mapping[str, Data]) -> Facts:
    """{gpus[]{index name uuid links inactive inactive_links[] speed_gb_s link_speeds[] errors{} ...}, ...}.

    links: links printed with a rate; inactive: printed as inactive; other_links{link: text}:
    printed as anything else. errors{counter: sum over the links}, for a bit error rate (ber) the
    worst link; errors_by_link{link: {counter: value}} has those that are not 0. message: what the
    tool says of a GPU in place of its links; supported: False when it says there is no NVLink;
    errors_inactive[]: messages of links that are down among the counters.
    errors[]: messages of the tool; files[]: what there was to read. Keys of a file that is missing or
    unreadable are absent.
    Raises ParseError when no file could be read.
    """
    gpus: Dict[int, _GpuLinks] = {}
    errors: List[str] = []
    failed: List[str] = []
    for name in (STATUS, ERRORS):
        if name in files:
            try:
                errors += _read(files[name], name == STATUS, gpus)
            except ParseError as error:
                failed.append(f"{name}: {error}")
    if len(failed) == len(files):
        raise ParseError("; ".join(failed))
    listed, said = [_facts(gpus[index]) for index in sorted(gpus)], list(dict.fromkeys(errors + failed))
    return {"gpus": listed, "errors": said, "files": sorted(files)}


def _read(data: Data, status: bool, gpus: Dict[int, _GpuLinks]) -> List[str]:
    """Add one file to gpus; returns the messages of the tool."""
    text = decode(data)
    found: Dict[int, _GpuLinks] = {}
    messages = Messages()
    lines = [line.strip() for line in text.splitlines()]
    gpu: Optional[_GpuLinks] = None
    for line in lines:
        heading, link = _GPU.match(line), _LINK.match(line)
        if heading:
            gpu = _heading(heading, found, messages)
        elif link and gpu:
            _link(gpu, link.group(1), link.group(2), status)
        elif line:
            _message(line, gpu, messages)
    if not found and not messages.errors:
        raise ParseError("no GPU and no message of the tool")
    if status and not text.endswith("\n") and not _complete(lines[-1]):
        raise ParseError(f"cut off within the line {lines[-1][:80]!r}")
    if status and any(map(_OTHER_OPTION.match, lines)) and not any(map(_has_state, found.values())):
        raise ParseError("no state of a link: the output of another option than -s")
    _merge(gpus, found, status)
    return [message["text"] for message in messages.errors]


def _heading(match: re.Match[str], found: Dict[int, _GpuLinks], messages: Messages) -> _GpuLinks:
    """'GPU 0: NAME (UUID: GPU-...) message': the message, where there is one, is on the same line."""
    index, rest = int(match.group(1)), match.group(2)
    name, mark, tail = rest.partition("(UUID:")
    uuid, _, tail = tail.partition(")")
    if len(found) >= MAX_GPUS:
        raise ParseError(f"more than {MAX_GPUS} GPUs")
    gpu = found.setdefault(index, _GpuLinks(index, name.strip(), uuid.strip() if mark else ""))
    if tail.strip():
        _message(tail.strip(), gpu, messages)
    return gpu


def _message(line: str, gpu: Optional[_GpuLinks], messages: Messages) -> None:
    # "Device does not have or support Nvlink" is the truth on a T4, not an error.
    if gpu is None or "device handle" in line.lower():  # of another GPU, which is not listed
        messages.read(line)
    elif _UNSUPPORTED.search(line) or messages.read(line):
        gpu.messages.append(line[:500])


def _link(gpu: _GpuLinks, link: str, rest: str, status: bool) -> None:
    name, colon, value = rest.rpartition(":")
    count = _COUNT.fullmatch(rest)
    if count:
        value, name = count.groups()
    if (colon or count) and not status:
        if gpu.counters is None:
            gpu.counters = {}
        gpu.counters.setdefault(link, {})[snake(name[:80])] = _number(value)
    elif status:
        rate = _RATE.fullmatch(rest)
        state: Union[float, str] = float(rate.group(1)) if rate else rest[:80]
        if gpu.states is None:
            gpu.states = {}
        gpu.states[link] = "" if rest.lower() in _INACTIVE else state


def _complete(line: str) -> bool:
    """True for a whole line of the status: the last one of an output that was cut off is not."""
    link = _LINK.match(line)
    if link:
        return bool(_RATE.fullmatch(link.group(2))) or link.group(2).lower() in _INACTIVE
    heading = _GPU.match(line)
    return bool(heading and line.endswith(")")) or bool(_UNSUPPORTED.search(line)) or Messages().read(line)


def _has_state(gpu: _GpuLinks) -> bool:
    return any(state == "" or isinstance(state, float) for state in (gpu.states or {}).values())


def _merge(gpus: Dict[int, _GpuLinks], found: Mapping[int, _GpuLinks], status: bool) -> None:
    for index, new in found.items():
        gpu = gpus.setdefault(index, _GpuLinks(index, new.name, new.uuid))
        gpu.messages += [text for text in new.messages if text not in gpu.messages]
        if status:
            gpu.states = new.states or {}  # a GPU without a line of links has none that is up
        else:
            gpu.counters = new.counters
            gpu.dark = [text for text in new.messages if "inactive" in text.lower()]


def _facts(gpu: _GpuLinks) -> Facts:
    facts: Facts = {"index": gpu.index}
    if gpu.name:
        facts["name"] = gpu.name
    if gpu.uuid:
        facts["uuid"] = gpu.uuid
    if gpu.states is not None:
        facts.update(_states(gpu.states))
    if gpu.counters is not None:
        facts["errors"] = _totals(gpu.counters.values())
        by_link = ((link, _not_zero(counters)) for link, counters in gpu.counters.items())
        facts["errors_by_link"] = {link: counters for link, counters in by_link if counters}
    if gpu.dark:
        facts["errors_inactive"] = gpu.dark
    if gpu.messages:
        facts["message"] = "; ".join(gpu.messages)
        if any(_UNSUPPORTED.search(text) for text in gpu.messages):
            facts["supported"] = False
    return facts


def _states(states: Mapping[str, Union[float, str]]) -> Facts:
    speeds = [state for state in states.values() if isinstance(state, float)]
    dark = [int(link) for link, state in states.items() if state == ""]
    facts: Facts = {"links": len(speeds), "inactive": len(dark), "link_speeds": speeds}
    facts.update({"inactive_links": dark} if dark else {})
    if speeds:
        # Equal counts: the lower rate, so that half the links being slow is not hidden.
        facts["speed_gb_s"] = min(Counter(speeds).items(), key=lambda item: (-item[1], item[0]))[0]
    other = {link: state for link, state in states.items() if isinstance(state, str) and state}
    if other:
        facts["other_links"] = other
    return facts


def _not_zero(counters: Mapping[str, Value]) -> Dict[str, Value]:
    return {
        name: value
        for name, value in counters.items()
        if isinstance(value, str) or (value is not None and abs(value) > _BER_FLOOR)
    }


def _totals(links: Iterable[Mapping[str, Value]]) -> Dict[str, Value]:
    totals: Dict[str, Value] = {}
    for counters in links:
        for name, value in counters.items():
            totals[name] = _add(name, totals.get(name), value)
    return totals


def _add(name: str, total: Value, value: Value) -> Value:
    """One more link: N/A adds nothing, an error text stays, rates are not summed."""
    if isinstance(total, str) or value is None:
        return total
    if isinstance(value, str) or total is None:
        return value
    return max(total, value) if "ber" in name.split("_") else total + value


def _number(text: str) -> Value:
    text = text.strip()
    if len(text) > 64 or word(text) is None:
        return text[:80] if text and not t.is_na(text) else None
    value = t.number(text)
    return text if isinstance(value, float) and not math.isfinite(value) else value
