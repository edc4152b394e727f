"""neuron-sysfs.json: what our reader found below /sys/devices/virtual/neuron_device and /sys/module/neuron."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("neuron-sysfs.json",)
LATER = True

MAX_DEVICES, MAX_WORD_CHARS, MAX_COUNTERS = 256, 200, 64
ECC = ("sram_ecc_uncorrected", "mem_ecc_uncorrected", "mem_ecc_repairable_uncorrected")


def parse(files: Mapping[str, Data]) -> Facts:
    """{driver, devices[]{index name serial cores connected[] ecc{} counters{}}}.

    driver: version of the loaded module, None when it is not loaded. ecc: counts, or the text of a read that failed.
    counters: sums over the device's cores of what the runtime counted there since the driver was loaded.
    """
    document = v.json_object(t.only(files))
    if not isinstance(document.get("devices"), dict):
        raise ParseError("no 'devices' in it: not the answer of the reader neuron_sysfs")
    driver = v.word(document.get("driver"))
    rows = [(v.integer(name), row) for name, row in list(document["devices"].items())[:MAX_DEVICES]]
    devices = [_device(index, row) for index, row in rows if index is not None and isinstance(row, dict)]
    return {
        "driver": driver[:MAX_WORD_CHARS] if driver else None,
        "devices": sorted(devices, key=lambda device: int(device["index"])),
    }


def _device(index: int, row: Dict[str, Any]) -> Facts:
    facts: Facts = {"index": index, "ecc": {}, "counters": {}}
    for key in ("serial", "name"):
        text = v.word(row.get(key))
        if text:
            facts[key] = text[:MAX_WORD_CHARS]
    facts["cores"] = v.integer(row.get("core_count"))
    if isinstance(row.get("connected_devices"), str) and not row["connected_devices"].startswith("error"):
        facts["connected"] = _numbers(row["connected_devices"])
    for name in ECC:
        if name in row:
            number = v.integer(row[name])
            facts["ecc"][name] = number if number is not None else str(row[name])[:MAX_WORD_CHARS]
    counters = row.get("counters")
    for name, value in list(counters.items())[:MAX_COUNTERS] if isinstance(counters, dict) else []:
        number = v.integer(value)
        if number is not None:
            facts["counters"][str(name)[:40]] = number
    return facts


def _numbers(text: str) -> List[int]:
    """'12, 3, 4, 1'; an empty line where the driver has no neighbours to show."""
    numbers = [v.integer(part) for part in text.split(",")[:MAX_DEVICES]]
    return [number for number in numbers if number is not None]
