"""neuron-ls, as JSON (-j) or as its table: the Neuron devices of a node, and who uses them.

Format: AWS Neuron documentation, "Neuron LS User Guide" (a list of objects with neuron_device, bdf, connected_to,
nc_count, memory_size, neuron_processes; from Trn2 on also logical_neuroncore_config and neuroncore_ids).
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional

from ...model import Facts, ParseError
from ..bundle import Data
from . import neuron_table
from . import text as t
from . import values as v

FILES = ("neuron-ls.json", "neuron-ls.txt")
LATER = True

MAX_TABLE_BYTES = 1 << 20
MAX_DEVICES, MAX_NEIGHBOURS, MAX_PROCESSES, MAX_WORD_CHARS = 256, 64, 64, 200
_NO_DEVICE = re.compile(
    r"no neuron devices? (?:found|available)|neuron (?:dkms )?driver is not (?:running|loaded)"
    r"|failed to discover neuron devices|unable to read device information from the driver",
    re.I,
)
_NOT_INSTALLED = re.compile(r"neuron-ls:.{0,40}not found|no such file or directory", re.I)
_LISTS = ("neuron_devices", "devices", "mlas")


def parse(files: Mapping[str, Data]) -> Facts:
    """{devices[]{index bdf cores lnc memory_bytes connected[] numa_node processes[]{pid command runtime}}}.

    cores: as printed, logical ones where lnc (physical cores per logical one) is above 1. connected: None when not
    printed. {error}: the tool's own sentence when it lists no device. Raises ParseError for anything else.
    """
    data = t.only(files)
    try:
        document = v.json_document(data)
    except ParseError:
        listed = neuron_table.read(t.decode(data, MAX_TABLE_BYTES))
        return {"devices": listed} if listed else {"devices": [], "error": _said(t.decode(data, 4096))}
    entries = _entries(document)
    if not entries and isinstance(document, dict):
        return {"devices": [], "error": _said(str(document.get("error") or ""))}
    if len(entries) > MAX_DEVICES:
        raise ParseError(f"{len(entries)} devices, no instance has more than {MAX_DEVICES}")
    devices = [_device(entry) for entry in entries]
    if any(device["index"] is None for device in devices):
        raise ParseError("an entry without neuron_device: not neuron-ls -j")
    return {"devices": devices}


def _said(text: str) -> str:
    """The sentence with which neuron-ls says that there is no device; raises ParseError for any other text."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = next((line for line in lines if _NO_DEVICE.search(line)), "")
    if told:
        return told[:MAX_WORD_CHARS]
    if any(_NOT_INSTALLED.search(line) for line in lines):
        raise ParseError("neuron-ls is not installed (package aws-neuronx-tools)")
    raise ParseError("not the JSON of neuron-ls -j" + (f"; it says: {lines[0][:120]}" if lines else ""))


def _entries(document: Any) -> List[Dict[str, Any]]:
    if isinstance(document, dict):
        document = next((document[name] for name in _LISTS if isinstance(document.get(name), list)), None)
    if isinstance(document, list) and len(v.mappings(document)) != len(document):
        raise ParseError("an entry that is no object: not neuron-ls -j")
    return v.mappings(document)


def _device(entry: Dict[str, Any]) -> Facts:
    connected = entry.get("connected_to")
    bdf = v.word(entry.get("bdf"))
    return {
        "index": v.integer(entry.get("neuron_device")),
        "bdf": bdf[:MAX_WORD_CHARS].lower() if bdf else None,
        "cores": v.integer(entry.get("nc_count")),
        "lnc": v.integer(entry.get("logical_neuroncore_config")),
        "memory_bytes": v.integer(entry.get("memory_size")),
        "connected": _numbers(connected) if isinstance(connected, list) else None,
        "numa_node": v.integer(entry.get("numa_node")),
        "processes": [_process(row) for row in v.mappings(entry.get("neuron_processes"))[:MAX_PROCESSES]],
    }


def _numbers(items: List[Any]) -> List[Optional[int]]:
    return [v.integer(item) for item in items[:MAX_NEIGHBOURS]]


def _process(row: Dict[str, Any]) -> Facts:
    command, runtime = v.word(row.get("command")), v.word(row.get("neuron_runtime_version"))
    return {
        "pid": v.integer(row.get("pid")),
        "command": command[:MAX_WORD_CHARS] if command else None,
        "runtime": runtime[:MAX_WORD_CHARS] if runtime else None,
    }
