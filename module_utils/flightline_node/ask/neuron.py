"""The reader `neuron_sysfs`: what the Neuron driver shows in /sys, small files gathered by one process.

Paths: AWS Neuron documentation, "Neuron Sysfs User Guide", and aws-neuron-driver's neuron_cdev.c and
neuron_sysfs_metrics.c. Driver 2.31 moves some of them: what is not where it was is looked for below the device.
"""

from __future__ import annotations

import glob
import json
import os
import re
from pathlib import Path
from typing import Any, Dict, List, Optional

from .files import value_of

CLASS = "sys/devices/virtual/neuron_device"
MODULE = "sys/module/neuron"
_ECC = ("sram_ecc_uncorrected", "mem_ecc_uncorrected", "mem_ecc_repairable_uncorrected")
_PLACES = {
    "core_count": "core_count",
    "connected_devices": "connected_devices",
    "serial": "info/serial_number",
    "name": "info/architecture/device_name",
    **{name: f"stats/hardware/{name}" for name in _ECC},
}
COUNTERS = (
    "hw_error", "hw_hbm_ue_error", "hw_repairable_hbm_ue_error", "hw_nc_ue_error", "hw_dma_abort_error",
    "hw_collectives_error", "timeout", "reset_fail_count",
)  # fmt: skip
"""Counters of a core that tell of trouble; those of a program's own mistakes are left out."""
_NOT_HERE = ("memory_usage", "power", "subsystem", "device")
_MAX_DEPTH, _MAX_FOLDERS = 4, 400


def present(root: str) -> bool:
    """Is the driver loaded, or has a device left its files? Two looks, so that other machines pay nothing."""
    return any(Path(root, place).is_dir() for place in (MODULE, CLASS))


def _value(path: str) -> Optional[str]:
    """A folder of that name is another driver's layout, not a file that cannot be read."""
    return None if Path(path).is_dir() else value_of(path)


def _below(device: str, names: List[str]) -> Dict[str, str]:
    """Files of these names anywhere in a device's folder but its cores and what is large."""
    found: Dict[str, str] = {}
    for count, (folder, folders, files) in enumerate(os.walk(device)):
        depth = folder[len(device) :].count(os.sep)
        keep = [name for name in sorted(folders) if name not in _NOT_HERE and not name.startswith("neuron_core")]
        folders[:] = keep if depth < _MAX_DEPTH and count < _MAX_FOLDERS else []
        for name in set(files) & set(names):
            value = value_of(os.path.join(folder, name))
            if value is not None:
                found.setdefault(name, value)
    return found


def _device(path: str) -> Dict[str, Any]:
    values = {name: _value(os.path.join(path, place)) for name, place in _PLACES.items()}
    moved = {os.path.basename(_PLACES[name]): name for name, value in values.items() if value is None}
    if moved:
        values.update((moved[file], value) for file, value in _below(path, list(moved)).items())
    counters = _counters(path)
    found: Dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    return {**found, "counters": counters} if counters else found


def _counters(device: str) -> Dict[str, int]:
    """{counter: total over the cores} of those above zero, and 0 for one that is there."""
    totals: Dict[str, int] = {}
    for core in sorted(glob.glob(os.path.join(glob.escape(device), "neuron_core*"))):
        for name in COUNTERS:
            folder = "other_info" if name.endswith("_count") else "status"
            text = value_of(os.path.join(core, "stats", folder, name, "total"))
            if text is not None and text.isdecimal():
                totals[name] = totals.get(name, 0) + int(text)
    return totals


def neuron_sysfs(root: str) -> str:
    """{driver, devices{index: {core_count, connected_devices, serial, name, ECC counts, counters{}}}}."""
    devices: Dict[str, Any] = {}
    for path in glob.glob(os.path.join(glob.escape(root), CLASS, "neuron[0-9]*")):
        match = re.fullmatch(r"neuron(\d+)", os.path.basename(path))
        if match:
            devices[match.group(1)] = _device(path)
    version = value_of(os.path.join(root, MODULE, "version"))
    return json.dumps({"driver": version, "devices": devices}, indent=1)
