"""The reader `sysfs`: small files of /sys that several checks need, gathered by one process."""

from __future__ import annotations

import glob
import json
import os
from collections import Counter
from typing import Any, Dict, List, Optional, Tuple

_PORT_FILES = ("state", "phys_state", "rate")
_P2P_FILES = ("gdr", "p2p")
"""The EFA driver says here whether it found the GPU driver's peer memory: gdr since 1.9, p2p since 2.6."""
_POLICY_FILES = ("scaling_driver", "scaling_governor", "energy_performance_preference")
_EDAC_FILES = ("mc_name", "ue_count", "ue_noinfo_count", "ce_count", "ce_noinfo_count", "seconds_since_reset")
_MAX_CHARS = 200


def _value(path: str) -> Optional[str]:
    """What a file says, None when there is no such file; a read that fails is told as 'error: ...'."""
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read(_MAX_CHARS).strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return f"error: {error.strerror or type(error).__name__}"


def _values(folder: str, names: Tuple[str, ...]) -> Dict[str, str]:
    found = {name: _value(os.path.join(folder, name)) for name in names}
    return {name: text for name, text in found.items() if text is not None}


def _folders(root: str, pattern: str) -> List[str]:
    return sorted(glob.glob(os.path.join(glob.escape(root), pattern)))


def _driver(device: str) -> str:
    return os.path.basename(os.path.realpath(os.path.join(device, "device", "driver")))


def _efa_ports(root: str) -> Dict[str, Any]:
    """{device: {ports: {number: {state, phys_state, rate}}, gdr, p2p}} of the devices whose driver is efa."""
    devices: Dict[str, Any] = {}
    for path in _folders(root, "sys/class/infiniband/*"):
        if _driver(path) == "efa":
            ports = {os.path.basename(port): _values(port, _PORT_FILES) for port in _folders(path, "ports/*")}
            devices[os.path.basename(path)] = {"ports": ports, **_values(os.path.join(path, "device"), _P2P_FILES)}
    return devices


def _cpufreq(root: str) -> List[Dict[str, Any]]:
    """[{driver, governor, epp, policies}]: frequency policies counted by how they are set."""
    kinds: Counter[Tuple[Optional[str], ...]] = Counter()
    for path in _folders(root, "sys/devices/system/cpu/cpufreq/policy*"):
        kinds[tuple(_value(os.path.join(path, name)) for name in _POLICY_FILES)] += 1
    return [
        {"driver": driver, "governor": governor, "epp": preference, "policies": count}
        for (driver, governor, preference), count in kinds.most_common(16)
    ]


def _net(root: str) -> Dict[str, Dict[str, str]]:
    """{interface: {mtu, operstate, driver}} of the interfaces that are devices, not those of containers."""
    found: Dict[str, Dict[str, str]] = {}
    for path in _folders(root, "sys/class/net/*"):
        if os.path.lexists(os.path.join(path, "device")):
            found[os.path.basename(path)] = {**_values(path, ("mtu", "operstate")), "driver": _driver(path)}
    return found


def sysfs(root: str) -> str:
    """EFA ports, CPU frequency policies, memory controllers, network interfaces; each section always there."""
    controllers = _folders(root, "sys/devices/system/edac/mc/mc[0-9]*")
    found: Dict[str, Any] = {
        "efa_ports": _efa_ports(root),
        "cpufreq": _cpufreq(root),
        "edac": {os.path.basename(path): _values(path, _EDAC_FILES) for path in controllers},
        "net": _net(root),
    }
    taint = _value(os.path.join(root, "sys/module/nvidia/taint"))
    return json.dumps({**found, "nvidia_taint": taint} if taint is not None else found, indent=1)
