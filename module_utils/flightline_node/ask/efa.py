"""The reader `efa_counters`: what the EFA devices count. A watcher asks for it every few seconds."""

from __future__ import annotations

import json
import os
from typing import Dict, List, Sequence

from .files import contents, entries
from .sysfs import INFINIBAND, driver


def _files(device: str, names: Sequence[str]) -> List[str]:
    found: List[str] = []
    for port in entries(os.path.join(device, "ports")):
        folder = os.path.join(port, "hw_counters")
        found += [os.path.join(folder, name) for name in names] or entries(folder)
    return found


def efa_counters(root: str, names: Sequence[str] = ()) -> str:
    """{device: {counter: value}} of the RDMA devices whose driver is efa, ports summed.

    names: only these counters; all that there are when none is given. P6 nodes also show mlx5 bridge devices in the
    same class directory: they are not EFA.
    """
    devices: Dict[str, Dict[str, int]] = {}
    for device in entries(os.path.join(root, INFINIBAND)):
        if driver(device) != "efa":
            continue
        counters = devices.setdefault(os.path.basename(device), {})
        for path in _files(device, names):
            value = contents(path)
            if value is not None and value.isdecimal():
                name = os.path.basename(path)
                counters[name] = counters.get(name, 0) + int(value)
    return json.dumps(devices)
