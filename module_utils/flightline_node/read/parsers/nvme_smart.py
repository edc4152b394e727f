"""nvme-smart.json: the reader's document, or what nvme-cli or smartctl prints, as JSON or as text.

Of a tool that prints one disk at a time the file holds its outputs one after another, or as a list.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterator, List, Mapping, Optional

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("nvme-smart.json",)

MAX_DISKS = 512
_NAMES = {
    "critical_warning": ("critical_warning",),
    "available_spare": ("avail_spare", "available_spare"),
    "spare_threshold": ("spare_thresh", "available_spare_threshold"),
    "percentage_used": ("percent_used", "percentage_used"),
    "media_errors": ("media_errors",),
    "power_on_hours": ("power_on_hours",),
    "temperature_c": ("temperature_c", "temperature"),
}
_TEXT_NAMES = {
    "available_spare": "available_spare", "available_spare_threshold": "available_spare_threshold",
    "percentage_used": "percentage_used", "media_errors": "media_errors", "power_on_hours": "power_on_hours",
    "media_and_data_integrity_errors": "media_errors", "temperature": "temperature",
}  # fmt: skip
_DEVICE = re.compile(r"(?:NVME device:|/dev/)(nvme\w+)")
_TEXT_LOG = re.compile(r"^critical[_ ]warning *:", re.IGNORECASE | re.MULTILINE)
_BLANKS = re.compile(r"[\s_]+")
_KELVIN, _HOTTEST_C = 273, 200


def parse(files: Mapping[str, Data]) -> Facts:
    """{disks[]{name model serial critical_warning available_spare spare_threshold percentage_used media_errors ...}}.

    A disk whose log could not be read has error in place of the values. Names are the kernel's where the
    output has them. Raises ParseError for anything else.
    """
    data = t.only(files)
    if len(data) > v.MAX_JSON_BYTES:
        raise ParseError(f"{len(data)} bytes of JSON, no tool here prints more than {v.MAX_JSON_BYTES}")
    disks: List[Facts] = []
    for document in _documents(t.decode(data)):
        disks += _disks(document)
        if len(disks) > MAX_DISKS:
            raise ParseError(f"more than {MAX_DISKS} disks")
    return {"disks": disks}


def _documents(text: str) -> Iterator[Any]:
    decoder, at, seen = json.JSONDecoder(), 0, 0
    while True:
        starts = [place for place in (text.find("{", at), text.find("[", at)) if place >= 0]
        if not starts or seen > MAX_DISKS:
            break
        try:
            document, at = decoder.raw_decode(text, min(starts))
        except (ValueError, RecursionError) as error:
            if not seen and _TEXT_LOG.search(text):
                break
            raise ParseError(f"not JSON: {str(error)[:120]}") from None
        seen += 1
        yield document
    if not seen:
        yield from _as_text(text)


def _as_text(text: str) -> Iterator[Any]:
    """`nvme smart-log` and `smartctl -a` as text: "name : value" lines, one log after another."""
    disks: List[Dict[str, Any]] = []
    name = ""
    for line in text.splitlines():
        told = _DEVICE.search(line)
        key, colon, value = line.partition(":")
        key = _BLANKS.sub("_", key.strip().lower())
        if told:
            name = told.group(1)
        elif colon and key == "critical_warning":
            disks.append({"device": {"name": name}, key: value.split()[0] if value.split() else None})
        elif colon and disks and key in _TEXT_NAMES and value.strip():
            disks[-1].setdefault(_TEXT_NAMES[key], v.integer(value.split()[0].rstrip("%").replace(",", "")))
    if not disks:
        raise ParseError("neither JSON nor a SMART log as text in it")
    yield from disks


def _disks(document: Any) -> Iterator[Facts]:
    if isinstance(document, list):
        for item in document:
            if isinstance(item, dict):
                yield from _disks(item)
        return
    if not isinstance(document, dict):
        raise ParseError("wanted an object")
    if _is_log(document) or "smartctl" in document:
        yield _disk(document, "")
        return
    entries = {name: item for name, item in document.items() if isinstance(item, dict)}
    if len(entries) < len(document):
        raise ParseError(f"no SMART log in it, keys {sorted(map(str, document))[:8]}")
    for name, item in entries.items():
        yield _disk(item, str(name)[:80])


def _is_log(document: Mapping[str, Any]) -> bool:
    return "critical_warning" in document


def _disk(item: Mapping[str, Any], name: str) -> Facts:
    device = item.get("device")
    printed = v.word(device.get("name")) if isinstance(device, dict) else None
    log = next(
        (item[key] for key in ("log", "nvme_smart_health_information_log") if isinstance(item.get(key), dict)), item
    )
    facts: Facts = {"name": name or (printed or "").replace("/dev/", "") or "a disk"}
    for key, source in (("model", ("model", "model_name")), ("serial", ("serial", "serial_number"))):
        word = next((v.word(item.get(other)) for other in source if item.get(other)), None)
        if word:
            facts[key] = word[:80]
    if not _is_log(log):
        return {**facts, "error": _reason(item)}
    return {**facts, **_values(log)}


def _values(log: Mapping[str, Any]) -> Dict[str, Optional[int]]:
    found: Dict[str, Optional[int]] = {}
    for name, sources in _NAMES.items():
        source = next((source for source in sources if source in log), None)
        if source:
            found[name] = _number(log[source])
    heat = found.get("temperature_c")
    if heat is not None and heat > _HOTTEST_C:  # nvme-cli prints Kelvin
        found["temperature_c"] = heat - _KELVIN
    return found


def _number(value: Any) -> Optional[int]:
    """A number; nvme-cli 2 prints the warning as an object with its value, and hexadecimal in places."""
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, str) and value.lower().startswith("0x") and len(value) < 10:
        try:
            return int(value, 16)
        except ValueError:
            return None
    return v.integer(value)


def _reason(item: Mapping[str, Any]) -> str:
    said = v.word(item.get("error"))
    messages = item.get("smartctl")
    listed = v.mappings(messages.get("messages")) if isinstance(messages, dict) else []
    return (said or next((v.word(row.get("string")) or "" for row in listed), "") or "no SMART log printed")[:200]
