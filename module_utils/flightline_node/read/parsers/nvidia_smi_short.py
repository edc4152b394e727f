"""The short forms of nvidia-smi: the plain table, the list (-L), and the CSV of --query-gpu with any columns.

They say less than -q does: `partial` tells the checks that what is missing was not asked for. Column names after
`nvidia-smi --help-query-gpu`; the table as drivers 375 to 610 print it.
"""

from __future__ import annotations

import re
from typing import Dict, List, Optional, Tuple

from .lazy import Lazy
from .nvidia_smi_fields import XML, Raw, RawGpu

MAX_GPUS = 1024
MAX_HEAD = 20000
"""All columns that --help-query-gpu lists fill some 9,000 characters."""
_QUERY = Lazy(r"--query-(?:gpu|remapped-rows|retired-pages)[= ]\"?'?([\w.,\[\] ]{1,20000}?)(?:['\"]|\s--|\s-\w|\s*$)")
_SUMMARY = Lazy(r"NVIDIA-SMI (\S+).*?Driver Version: *(\S+)(?:.*?CUDA Version: *(\S+))?")
_FIRST = Lazy(
    r"\|\s+(\d{1,3})\s+(\S.*?)\s+(On|Off|N/A"
    r"|ERR!)\s*\|\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s+(\S+)\s*\|\s*(\S+)\s*\|"
)
_SECOND = Lazy(
    r"\|\s*(?:\d+%|N/A|ERR!|Unknown)\s*(\S+?)C?\s+(P\d+"
    r"|\S+)\s+(\S+?)W? */ *(\S+?)W?\s*\|\s*(\S+?)(?:MiB)? */ *(\S+?)(?:MiB)?\s*\|"
)
_LISTED = Lazy(r"GPU (\d{1,3}): (.{1,100}?) \(UUID: (GPU-[0-9a-f-]{36})\)")
_TABLE = """
name=product_name gpu_name=product_name gpu_uuid=uuid uuid=uuid serial=serial gpu_serial=serial
pci.bus_id=pci/pci_bus_id gpu_bus_id=pci/pci_bus_id pstate=performance_state vbios_version=vbios_version
persistence_mode=persistence_mode compute_mode=compute_mode mig.mode.current=mig_mode/current_mig
mig.mode.pending=mig_mode/pending_mig ecc.mode.current=ecc_mode/current_ecc ecc.mode.pending=ecc_mode/pending_ecc
temperature.gpu=temperature/gpu_temp temperature.memory=temperature/memory_temp memory.total=fb_memory_usage/total
memory.used=fb_memory_usage/used memory.free=fb_memory_usage/free memory.reserved=fb_memory_usage/reserved
power.draw=gpu_power_readings/power_draw power.limit=gpu_power_readings/current_power_limit
power.default_limit=gpu_power_readings/default_power_limit power.min_limit=gpu_power_readings/min_power_limit
power.max_limit=gpu_power_readings/max_power_limit clocks.max.memory=max_clocks/mem_clock
clocks.max.mem=max_clocks/mem_clock clocks.max.sm=max_clocks/sm_clock inforom.img=inforom_version/img_version
fabric.state=fabric/state fabric.status=fabric/status remapped_rows.correctable=remapped_rows/remapped_row_corr
remapped_rows.pending=remapped_rows/remapped_row_pending remapped_rows.uncorrectable=remapped_rows/remapped_row_unc
remapped_rows.failure=remapped_rows/remapped_row_failure retired_pages.pending=retired_pages/pending_retirement
retired_pages.double_bit.count=retired_pages/double_bit_retirement/retired_count
gpu_recovery_action=gpu_recovery_action
retired_pages.single_bit_ecc.count=retired_pages/multiple_single_bit_retirement/retired_count
"""
_COLUMNS = dict(pair.split("=", 1) for pair in _TABLE.split())
_ECC = re.compile(r"ecc\.errors\.(un)?corrected\.(volatile|aggregate)\.(total|dram|sram|device_memory)$")
_REASON = re.compile(r"clocks_(?:event|throttle)_reasons\.([a-z_]+)$")
_KNOWN = re.compile(
    r"(?:index|count|timestamp|driver_version|[a-z]\w*\.[\w.]+|hostname|"
    r"(?:display|addressing|compute|edpp)_[a-z]+|" + "|".join(map(re.escape, _COLUMNS)) + r")$"
)

_NAMES_A_GPU = re.compile(
    r"(?:NVIDIA|Tesla|Quadro|GeForce) |GPU-[0-9a-f]{8}-|[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d$"
)


def read(text: str) -> Optional[Raw]:
    """The GPUs of a short form; None for any other text."""
    raw, lines = Raw(XML), text.splitlines()
    columns: List[str] = []
    gpus: Dict[str, RawGpu] = {}
    for line in lines:
        found = _columns(line)
        if found:
            columns = found
        elif columns and line.count(",") == len(columns) - 1 and not raw.messages.read(line):
            _row(columns, [cell.strip() for cell in line.split(",")], gpus, raw)
        else:
            _listed(line, gpus, raw)
    raw.gpus = list(gpus.values())
    return raw if raw.gpus else None


def is_headless(text: str) -> bool:
    """Rows of --query-gpu without the names of their columns: which number counts errors, nobody can tell."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()]
    return bool(rows) and all(
        len(row) == len(rows[0]) > 1 and any(map(_NAMES_A_GPU.match, row)) for row in rows[:MAX_GPUS]
    )


def _columns(line: str) -> List[str]:
    """The names of the columns, by the table's heading or the command that printed it."""
    query = _QUERY.search(line) if "--query-" in line else None
    cells = (query.group(1) if query else line).split(",")
    names = [re.sub(r" *\[[\w%/ ]*\]$", "", cell.strip()).replace("clocks.current.", "clocks.") for cell in cells]
    return names if query or (len(line) < MAX_HEAD and all(map(_KNOWN.match, names))) else []


def _row(columns: List[str], cells: List[str], gpus: Dict[str, RawGpu], raw: Raw) -> None:
    of = dict(zip(columns, cells))
    key = next((of[name] for name in ("uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "index") if name in of), "")
    if of.get("driver_version"):
        raw.top.setdefault("driver_version", of["driver_version"])
    if len(gpus) < MAX_GPUS:
        # Of samples taken one after another the last stands.
        gpus[key or str(len(gpus))] = RawGpu(leaves={_leaf(name): cell for name, cell in of.items()})


def _leaf(name: str) -> str:
    counter, reason = _ECC.match(name), _REASON.match(name)
    if counter:
        un, scope, part = counter.groups()
        if part == "total":
            return f"ecc_errors/{scope}/{'double' if un else 'single'}_bit/total"
        part = "dram" if part == "device_memory" else part
        return f"ecc_errors/{scope}/{part}_{un or ''}correctable"
    if reason and reason.group(1) not in ("active", "supported"):
        return f"clocks_event_reasons/clocks_event_reason_{reason.group(1)}"
    return _COLUMNS.get(name, name)


def _listed(line: str, gpus: Dict[str, RawGpu], raw: Raw) -> None:
    """A line of the plain table or of -L, or a message of the tool."""
    summary, first, listed = _SUMMARY.search(line), _FIRST.match(line.strip()), _LISTED.search(line)
    second = _SECOND.match(line.strip()) if gpus and not first else None
    if summary:
        raw.top.update(
            {"driver_version": summary.group(2)}, **({"cuda_version": summary.group(3)} if summary.group(3) else {})
        )
    elif first and len(gpus) < MAX_GPUS:
        gpus[first.group(1)] = RawGpu(leaves=_of_table(first.groups()))
    elif second:
        temperature, state, draw, limit, used, total = second.groups()
        list(gpus.values())[-1].leaves.update({
            "temperature/gpu_temp": temperature, "performance_state": state, "gpu_power_readings/power_draw": draw,
            "gpu_power_readings/current_power_limit": limit, "fb_memory_usage/used": used,
            "fb_memory_usage/total": total,
        })  # fmt: skip
    elif listed and len(gpus) < MAX_GPUS:
        gpus[listed.group(3)] = RawGpu(leaves={"product_name": listed.group(2), "uuid": listed.group(3)})
    elif not listed:
        raw.messages.read(line)


def _of_table(cells: Tuple[Optional[str], ...]) -> Dict[str, str]:
    _, name, persistence, bus, _, errors = (str(cell) for cell in cells)
    mode = {"On": "Enabled", "Off": "Disabled"}
    leaves = {
        "product_name": name.rstrip(" ."),
        "persistence_mode": mode.get(persistence, persistence),
        "pci/pci_bus_id": bus,
    }
    if errors == "Off":
        return {**leaves, "ecc_mode/current_ecc": "Disabled"}
    if errors in ("N/A", "On"):
        # With MIG the column says that it counts (On); the counts stand with the instances.
        return leaves
    return {**leaves, "ecc_mode/current_ecc": "Enabled", "ecc_errors/volatile/double_bit/total": errors}
