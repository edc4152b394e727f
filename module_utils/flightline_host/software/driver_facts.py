"""What NVIDIA software a host has: kernel module, user space, packages, services, and who holds the devices."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, NamedTuple, Optional

from ..host import Host
from ..system.services import Unit, unit
from .packages import Package, installed

FABRIC_MANAGER = "nvidia-fabricmanager.service"
PERSISTENCED = "nvidia-persistenced.service"
HOST_ENGINE = "nvidia-dcgm.service"
_NAMES = ("nvidia-*", "libnvidia-*", "cuda-drivers*", "xserver-xorg-video-nvidia*", "kmod-nvidia*", "nvlsm")
_NVIDIA_VENDOR = "0x10de"
_DISPLAY_CLASS = "0x03"
_FABRIC_VERSION = re.compile(r"version is\s*:\s*([\d.]+)")
_LIBRARY = re.compile(r"libnvidia-ml\.so\.(\d+\.\d+(?:\.\d+)*)$")
# "nvidia/580.95.05, 6.8.0-1029-aws, x86_64: installed", or "nvidia/580.95.05: added" before any build; the name is the
# distribution's own (Debian: nvidia-current), dkms 2 separates by ", ".
_DKMS = re.compile(r"^nvidia[\w-]*(?:/|, )([\w.-]+?)(?:, ([^,:]+), [^:]+)?: (\w+)", re.MULTILINE)


class Holder(NamedTuple):
    """A process that has an NVIDIA device open."""

    pid: int
    name: str
    device: str


class InstalledDriver(NamedTuple):
    """The driver as the host has it; None where there is none."""

    loaded: Optional[str]
    loaded_open: Optional[bool]
    on_disk: Optional[str]
    on_disk_open: Optional[bool]
    library: Optional[str]
    packages: List[Package]
    kernel: str
    dkms: List[Dict[str, str]]
    fabric_manager: Optional[str]
    fabric_unit: Unit
    persistence_unit: Unit
    nouveau: bool
    gpus: int
    holders: List[Holder]

    @property
    def version(self) -> Optional[str]:
        """The version that counts: of the loaded module, else of the one on disk, else of user space."""
        return self.loaded or self.on_disk or self.library

    def facts(self) -> Dict[str, Any]:
        """Plain values for the module's result."""
        return {
            "version": self.version,
            "loaded": self.loaded,
            "on_disk": self.on_disk,
            "open": self.loaded_open if self.loaded else self.on_disk_open,
            "library": self.library,
            "packages": {package.name: package.version for package in self.packages if package.installed},
            "half_installed": [package.name for package in self.packages if not package.installed],
            "dkms": self.dkms,
            "fabric_manager": self.fabric_manager,
            "fabric_manager_state": self.fabric_unit.active,
            "persistenced_state": self.persistence_unit.active,
            "gpus": self.gpus,
            "holders": [holder._asdict() for holder in self.holders],
        }


def look(host: Host) -> InstalledDriver:
    """Read everything; nothing here touches a GPU, so that a GPU that hangs cannot hang the look."""
    version, license_text = _modinfo(host, "version"), _modinfo(host, "license")
    loaded = (host.read("/sys/module/nvidia/version") or "").strip() or None
    return InstalledDriver(
        loaded=loaded,
        loaded_open="Open Kernel Module" in (host.read("/proc/driver/nvidia/version") or "") if loaded else None,
        on_disk=version,
        # The open module is "Dual MIT/GPL", the proprietary one "NVIDIA" (open-gpu-kernel-modules, nv.c).
        on_disk_open="GPL" in (license_text or "") if version else None,
        library=_library(host),
        packages=installed(host, _NAMES),
        kernel=(host.read("/proc/sys/kernel/osrelease") or "").strip(),
        dkms=_dkms(host),
        fabric_manager=_fabric_version(host),
        fabric_unit=unit(host, FABRIC_MANAGER),
        persistence_unit=unit(host, PERSISTENCED),
        nouveau=host.exists("/sys/module/nouveau"),
        gpus=_gpus(host),
        holders=holders(host),
    )


def _modinfo(host: Host, field: str) -> Optional[str]:
    answer = host.ask(["modinfo", "-F", field, "nvidia"])
    return answer.out.strip() or None if answer.rc == 0 else None


def _library(host: Host) -> Optional[str]:
    places = (
        "/usr/lib/*/libnvidia-ml.so.*",
        "/usr/lib/*/nvidia/current/libnvidia-ml.so.*",
        "/usr/lib64/libnvidia-ml.so.*",
    )
    found = (_LIBRARY.search(path) for place in places for path in host.glob(place))
    return next((match.group(1) for match in found if match), None)


def _dkms(host: Host) -> List[Dict[str, str]]:
    answer = host.ask(["dkms", "status"])
    rows = _DKMS.findall(answer.out) if answer.rc == 0 else []
    return [{"version": version, "kernel": kernel, "state": state} for version, kernel, state in rows]


def _fabric_version(host: Host) -> Optional[str]:
    answer = host.ask(["nv-fabricmanager", "--version"])
    found = _FABRIC_VERSION.search(answer.out + answer.err)
    return found.group(1) if found else None


def _gpus(host: Host) -> int:
    devices = host.glob("/sys/bus/pci/devices/*/vendor")
    ours = [path.rpartition("/")[0] for path in devices if (host.read(path) or "").strip() == _NVIDIA_VENDOR]
    return sum((host.read(f"{path}/class") or "").startswith(_DISPLAY_CLASS) for path in ours)


def holders(host: Host) -> List[Holder]:
    """Processes with /dev/nvidia* open, one line each; the kernel refuses to unload a module they hold."""
    found: Dict[int, Holder] = {}
    for path in host.glob("/proc/[0-9]*/fd/*"):
        device = _target(host, path)
        pid = int(path.split("/")[2])
        if device.startswith("/dev/nvidia") and pid not in found:
            name = (host.read(f"/proc/{pid}/comm") or "?").strip()
            found[pid] = Holder(pid, name, device)
    return sorted(found.values())


def _target(host: Host, path: str) -> str:
    try:
        return os.readlink(host.path(path))
    except OSError:  # the process ended meanwhile
        return ""
