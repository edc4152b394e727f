"""neuron-ls without -j: a table whose head names the columns over two lines, with rows of further processes below."""

from __future__ import annotations

import re
from typing import Dict, List, Optional

from ...model import Facts
from . import values as v

_GROUPED = re.compile(r"logical-neuroncore-config:\s*(\d{1,2})\s*$")
_SIZE = re.compile(r"(\d{1,6}) ?GB$")
MAX_DEVICES, MAX_CHARS = 256, 200


def read(text: str) -> List[Facts]:
    """The devices of the table, as neuron_ls has them; [] when there is no such table."""
    head: List[str] = []
    devices: List[Facts] = []
    grouped: Optional[int] = None
    for line in text.splitlines():
        match = _GROUPED.search(line)
        grouped = int(match.group(1)) if match else grouped
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.lstrip().startswith("|") else []
        if not cells:
            continue
        row = dict(zip(head, cells))
        if cells[0].isdecimal() and "NEURON DEVICE" in row and len(devices) < MAX_DEVICES:
            devices.append(_device(row, grouped))
        if not devices:
            head = [f"{above} {cell}".strip() for above, cell in zip(head or [""] * len(cells), cells)]
        elif row.get("PID", "").isdecimal():
            devices[-1]["processes"].append(_process(row))
    return devices


def _device(row: Dict[str, str], grouped: Optional[int]) -> Facts:
    size, joined = _SIZE.match(row.get("NEURON MEMORY", "")), row.get("CONNECTED DEVICES")
    numbers = [v.integer(part) for part in joined.split(",")] if joined else []
    return {
        "index": v.integer(row["NEURON DEVICE"]),
        "bdf": row.get("PCI BDF", "")[:MAX_CHARS].lower() or None,
        "cores": v.integer(row.get("NEURON CORES")),
        "lnc": grouped,
        "memory_bytes": int(size.group(1)) << 30 if size else None,
        "connected": None if joined is None else [number for number in numbers if number is not None],
        "numa_node": v.integer(row.get("NUMA NODE")),
        "processes": [],
    }


def _process(row: Dict[str, str]) -> Facts:
    return {
        "pid": v.integer(row["PID"]),
        "command": row.get("COMMAND", "")[:MAX_CHARS] or None,
        "runtime": row.get("RUNTIME VERSION", "")[:MAX_CHARS] or None,
    }
