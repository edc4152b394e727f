"""The reader `sysfs`: small files of /sys that several checks need, gathered by one process."""

from __future__ import annotations

import glob
import json
import os
import struct
from collections import Counter
from typing import Any, Dict, List, Optional, Tuple

from .files import entries, value_of

INFINIBAND = "sys/class/infiniband"
_PORT_FILES = ("state", "phys_state", "rate")
_P2P_FILES = ("gdr", "p2p")
"""The EFA driver says here whether it found the GPU driver's peer memory: gdr since 1.9, p2p since 2.6."""
_POLICY_FILES = ("scaling_driver", "scaling_governor", "energy_performance_preference")
_EDAC_FILES = ("mc_name", "ue_count", "ue_noinfo_count", "ce_count", "ce_noinfo_count", "seconds_since_reset")
_CLOCK_FILES = ("current_clocksource", "available_clocksource")
_WTMP, _BOOT_TIME = struct.Struct("<h338xi40x"), 2
_WTMP_RECORDS, _MAX_BOOTS = 1024, 32
_MAX_TABLE = 8192


def _values(folder: str, names: Tuple[str, ...]) -> Dict[str, str]:
    found = {name: value_of(os.path.join(folder, name)) for name in names}
    return {name: text for name, text in found.items() if text is not None}


def _folders(root: str, pattern: str) -> List[str]:
    return sorted(glob.glob(os.path.join(glob.escape(root), pattern)))


def driver(device: str) -> str:
    """The name of a device's driver; "driver" where it has none."""
    link = os.path.join(device, "device", "driver")
    try:
        name = os.path.basename(os.readlink(link))  # realpath asks for every folder on the way
    except OSError:
        return os.path.basename(link)
    # A link to another "driver" link, as in a copy of /sys, says nothing yet.
    return name if name != os.path.basename(link) else os.path.basename(os.path.realpath(link))


def _efa_ports(root: str) -> Dict[str, Any]:
    """{device: {ports: {number: {state, phys_state, rate}}, gdr, p2p}} of the devices whose driver is efa."""
    devices: Dict[str, Any] = {}
    for path in entries(os.path.join(root, INFINIBAND)):
        if driver(path) == "efa":
            ports = {
                os.path.basename(port): _values(port, _PORT_FILES) for port in entries(os.path.join(path, "ports"))
            }
            devices[os.path.basename(path)] = {"ports": ports, **_values(os.path.join(path, "device"), _P2P_FILES)}
    return devices


def _cpufreq(root: str) -> List[Dict[str, Any]]:
    """[{driver, governor, epp, policies}]: frequency policies counted by how they are set."""
    kinds: Counter[Tuple[Optional[str], ...]] = Counter()
    for path in _folders(root, "sys/devices/system/cpu/cpufreq/policy*"):
        kinds[tuple(value_of(os.path.join(path, name)) for name in _POLICY_FILES)] += 1
    return [
        {"driver": driver, "governor": governor, "epp": preference, "policies": count}
        for (driver, governor, preference), count in kinds.most_common(16)
    ]


def _net(root: str) -> Dict[str, Dict[str, str]]:
    """{interface: {mtu, operstate, driver}} of the interfaces that are devices, not those of containers."""
    found: Dict[str, Dict[str, str]] = {}
    for path in entries(os.path.join(root, "sys/class/net")):
        if os.path.lexists(os.path.join(path, "device")):
            found[os.path.basename(path)] = {**_values(path, ("mtu", "operstate")), "driver": driver(path)}
    return found


def _lnet(root: str) -> Optional[Dict[str, Optional[str]]]:
    """LNet's table of its interfaces, which lnetctl net show would need a process for; None when it is not loaded."""
    if not os.path.lexists(os.path.join(root, "sys/module/lnet")):
        return None
    return {"nis": value_of(os.path.join(root, "sys/kernel/debug/lnet/nis"), _MAX_TABLE)}


def _boots(root: str) -> Optional[List[int]]:
    """When the node booted, in seconds since 1970, newest last, by wtmp (utmp(5)); None where there is no such file."""
    try:
        with open(os.path.join(root, "var/log/wtmp"), "rb") as handle:
            size = os.fstat(handle.fileno()).st_size
            handle.seek(max(0, size - _WTMP_RECORDS * _WTMP.size) // _WTMP.size * _WTMP.size)
            data = handle.read(_WTMP_RECORDS * _WTMP.size)
    except OSError:
        return None
    if size % _WTMP.size:
        return None  # 64-bit Arm has longer records
    times = [seconds for kind, seconds in _WTMP.iter_unpack(data) if kind == _BOOT_TIME]
    return times[-_MAX_BOOTS:]


def moving(root: str) -> str:
    """Of sysfs() what can break from one moment to the next, in the same shape: for a watcher, every few seconds."""
    controllers = _folders(root, "sys/devices/system/edac/mc/mc[0-9]*")
    found: Dict[str, Any] = {
        "efa_ports": _efa_ports(root),
        "edac": {os.path.basename(path): _values(path, _EDAC_FILES) for path in controllers},
    }
    mdstat = value_of(os.path.join(root, "proc/mdstat"), _MAX_TABLE)
    return json.dumps({**found, **({} if mdstat is None else {"mdstat": mdstat})})


def sysfs(root: str) -> str:
    """EFA ports, CPU frequency policies, memory controllers, network interfaces; each section always there.

    clocksource, boots, lnet, mdstat and nvidia_taint only where the node has such a thing.
    """
    controllers = _folders(root, "sys/devices/system/edac/mc/mc[0-9]*")
    found: Dict[str, Any] = {
        "efa_ports": _efa_ports(root),
        "cpufreq": _cpufreq(root),
        "edac": {os.path.basename(path): _values(path, _EDAC_FILES) for path in controllers},
        "net": _net(root),
    }
    clocks = _values(os.path.join(root, "sys/devices/system/clocksource/clocksource0"), _CLOCK_FILES)
    optional = {
        "clocksource": {name.split("_")[0]: value for name, value in clocks.items()} or None,
        "lnet": _lnet(root),
        "boots": _boots(root),
        "mdstat": value_of(os.path.join(root, "proc/mdstat"), _MAX_TABLE),
        "nvidia_taint": value_of(os.path.join(root, "sys/module/nvidia/taint")),
    }
    found.update((name, value) for name, value in optional.items() if value is not None)
    return json.dumps(found)
