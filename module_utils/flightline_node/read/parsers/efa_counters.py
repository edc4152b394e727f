"""efa-counters.json: hardware counters of the EFA devices, read from sysfs by the probe."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("efa-counters.json",)


def parse(files: Mapping[str, Data]) -> Facts:
    """{devices{name: {counter: int}}, count}; no device at all is a count of 0.

    A counter that is no number keeps its text. Counters run since the device was reset, over
    reboots of the operating system. Raises ParseError for anything but {device: {counter: value}}.
    """
    loaded = v.json_object(t.only(files))
    devices: Dict[str, Dict[str, Any]] = {}
    for name, counters in loaded.items():
        if not isinstance(counters, dict):
            raise ParseError(f"device {name[:40]}: got {type(counters).__name__}, wanted an object of counters")
        devices[name] = {counter: _value(value) for counter, value in counters.items()}
    return {"devices": devices, "count": len(devices)}


def _value(value: Any) -> Any:
    """An int; None for null; anything else as its text."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    word = str(value).strip()
    return int(word) if word.isascii() and word.isdigit() and len(word) < 40 else word
