"""Verify an NVIDIA driver, and load the installed one in place of an older one that still runs."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Optional

from ..host import Host, Problem, Problems
from ..outcome import Outcome
from ..system.services import unit
from ..version import reaches, within
from .driver_facts import FABRIC_MANAGER, HOST_ENGINE, PERSISTENCED, InstalledDriver, look

_UNLOAD = ("nvidia_fs", "gdrdrv", "nvidia_peermem", "nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia")
_LOAD = ("nvidia", "nvidia_uvm")
SERVICES = (HOST_ENGINE, FABRIC_MANAGER, PERSISTENCED)
"""They hold the devices and are stopped for a reload; in this order, and started again in the other."""
_SERVICE_PROCESSES = ("nvidia-persistenced", "nvidia-persiste", "nv-fabricmanager", "nv-fabricmanage", "nv-hostengine")
"""The kernel cuts a process's name to 15 characters (proc_pid_comm(5))."""
FABRIC_RENAMED = "580"


def fabric_manager_package(version: str) -> str:
    """NVIDIA's repository: one package from 580, before that one per branch (Fabric Manager user guide)."""
    return (
        "nvidia-fabricmanager" if reaches(version, FABRIC_RENAMED) else f"nvidia-fabricmanager-{version.split('.')[0]}"
    )


def ensure(host: Host, wanted: Mapping[str, Any], check: bool) -> Outcome:
    """Judge what `state` asks for (see the module); loaded also puts the installed version in a stale one's place."""
    driver = look(host)
    before = _shown(driver)
    problems = [] if wanted["state"] == "read" else list(_judge(driver, wanted))
    if wanted["state"] == "loaded" and not problems:
        if driver.on_disk and driver.loaded != driver.on_disk:
            problems = list(_holds(driver))
            if not problems:
                return _reload(host, driver, wanted, check)
        problems = problems or list(_running(driver, wanted))
    if problems:
        raise Problems(problems)
    return Outcome(False, before, before, driver.facts())


def _judge(driver: InstalledDriver, wanted: Mapping[str, Any]) -> Iterator[Problem]:
    yield from _broken(driver)
    if wanted["state"] == "absent_or_whole":
        return
    if driver.version is None:
        yield Problem(
            "no NVIDIA driver", f"driver {wanted['version'] or 'of any version'}", "install it (role nvidia_driver)"
        )
        return
    yield from _versions(driver, wanted)
    if wanted["state"] != "packages":
        yield from _module(driver, wanted)
    if wanted["fabric_manager"]:
        yield from _fabric(driver, wanted)


def _shown(driver: InstalledDriver) -> Dict[str, Any]:
    return {"loaded": driver.loaded, "on_disk": driver.on_disk}


def _broken(driver: InstalledDriver) -> Iterator[Problem]:
    broken = [
        f"{package.name} {package.version} ({package.state.strip()})"
        for package in driver.packages
        if not package.installed
    ]
    if broken:
        yield Problem(
            f"half-installed packages: {', '.join(broken)}",
            "every NVIDIA package unpacked and configured",
            "finish or undo it: dpkg --configure -a, apt-get -f install, or purge these packages; then run again",
        )


def _module(driver: InstalledDriver, wanted: Mapping[str, Any]) -> Iterator[Problem]:
    if driver.on_disk is None and driver.loaded is None:
        built = "; ".join(f"DKMS has {row['version']} {row['state']} {row['kernel']}".strip() for row in driver.dkms)
        yield Problem(
            f"no nvidia kernel module for kernel {driver.kernel} ({built or 'DKMS has none'})",
            "the module built and installed for the running kernel",
            f"install the headers of {driver.kernel} and run dkms autoinstall; its make.log says why a build failed",
        )
    flavour = driver.on_disk_open if driver.on_disk else driver.loaded_open
    if wanted["kernel_module"] != "any" and flavour is not None and flavour != (wanted["kernel_module"] == "open"):
        yield Problem(
            f"the {'open' if flavour else 'proprietary'} kernel module",
            f"the {wanted['kernel_module']} one, which this GPU needs",
            "remove the driver packages of the other flavour, then run again",
        )


def _versions(driver: InstalledDriver, wanted: Mapping[str, Any]) -> Iterator[Problem]:
    settled = driver.on_disk or driver.version or ""
    if wanted["version"] and not within(settled, wanted["version"]):
        yield Problem(
            f"driver {settled}",
            f"driver {wanted['version']}",
            "correct the pin (nvidia_driver_version), or use an image with that driver, or let the role install it",
        )
    if wanted["minimum"] and not reaches(settled, wanted["minimum"]):
        yield Problem(
            f"driver {settled}",
            f"driver {wanted['minimum']} or later, which this GPU needs",
            "use an image with it, or let the role install it (nvidia_driver_source: vendor)",
        )
    if driver.library and driver.library != settled:
        yield Problem(
            f"user space {driver.library} with kernel module {settled}",
            "one version: nvidia-smi and CUDA refuse a mismatch",
            "install the same version of both, then run again",
        )


def _fabric(driver: InstalledDriver, wanted: Mapping[str, Any]) -> Iterator[Problem]:
    version = driver.on_disk or driver.version or ""
    package = fabric_manager_package(version)
    if driver.fabric_manager is None:
        yield Problem("no Fabric Manager", f"{package} {version}", f"install {package} of exactly the driver's version")
    elif driver.fabric_manager != version:
        yield Problem(
            f"Fabric Manager {driver.fabric_manager} with driver {version}",
            "the same version: it refuses any other driver, and CUDA then fails with error 802",
            f"install {package} {version}",
        )
    if wanted["nvlsm"] and not any(package.name == "nvlsm" and package.installed for package in driver.packages):
        yield Problem("no NVLSM", "package nvlsm: NVLink 5 switches have no subnet manager without it", "install nvlsm")


def _running(driver: InstalledDriver, wanted: Mapping[str, Any]) -> Iterator[Problem]:
    if driver.loaded is None:
        yield Problem("the kernel module is not loaded", f"nvidia {driver.on_disk} loaded", "read dmesg for NVRM lines")
    needed = [(wanted["persistenced"], driver.persistence_unit), (wanted["fabric_manager"], driver.fabric_unit)]
    for demanded, state in needed:
        if demanded and not state.running:
            yield Problem(
                f"{state.name} is {state.active} ({state.load})",
                "active",
                f"systemctl status {state.name}; journalctl -u {state.name}",
            )


def _holds(driver: InstalledDriver) -> Iterator[Problem]:
    strangers = [holder for holder in driver.holders if holder.name not in _SERVICE_PROCESSES]
    if strangers:
        named = ", ".join(f"{holder.name} (pid {holder.pid}, {holder.device})" for holder in strangers[:8])
        yield Problem(
            f"driver {driver.loaded} runs, {driver.on_disk} is installed, and the devices are held by {named}",
            "no process on the GPUs while the driver is changed",
            "end these processes (or drain the node), then run again; a reboot does it as well",
        )
    if driver.gpus == 0:
        yield Problem("no NVIDIA GPU on the PCI bus", "at least one", "check the instance type; lspci -d 10de:")
    if driver.nouveau:
        yield Problem(
            "the nouveau driver is loaded and holds the GPUs",
            "the nvidia driver",
            "blacklist nouveau and reboot the node",
        )


def _reload(host: Host, driver: InstalledDriver, wanted: Mapping[str, Any], check: bool) -> Outcome:
    before = _shown(driver)
    after = {"loaded": driver.on_disk, "on_disk": driver.on_disk}
    if check:
        return Outcome(True, before, after, driver.facts())
    goal, advice = f"nvidia {driver.on_disk} loaded", "read dmesg for NVRM lines; a reboot of the node loads it as well"
    started: List[str] = [name for name in SERVICES if unit(host, name).running]
    for name in started:
        host.change(["systemctl", "stop", name], goal, advice)
    if driver.loaded:
        present = [name for name in _UNLOAD if host.exists(f"/sys/module/{name}")]
        host.change(["modprobe", "-r", *present], goal, advice)
    for name in _LOAD:
        host.change(["modprobe", name], goal, advice)
    for name in _to_start(driver, wanted, started):
        host.change(["systemctl", "start", name], goal, f"journalctl -u {name}")
    now = look(host)
    problems = list(_running(now, wanted))
    if not problems and now.loaded != driver.on_disk:
        problems = [Problem(f"nvidia {now.loaded} still runs", goal, advice)]
    if problems:
        raise Problems(problems)
    return Outcome(True, before, _shown(now), now.facts())


def _to_start(driver: InstalledDriver, wanted: Mapping[str, Any], started: List[str]) -> List[str]:
    """What ran before, and what is demanded and there."""
    demanded: List[Optional[str]] = [
        PERSISTENCED if wanted["persistenced"] and driver.persistence_unit.there else None,
        FABRIC_MANAGER if wanted["fabric_manager"] and driver.fabric_unit.there else None,
    ]
    names = {*started, *(name for name in demanded if name)}
    return [name for name in reversed(SERVICES) if name in names]
