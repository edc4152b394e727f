"""Did the kernel report trouble with memory, CPUs, disks, file systems or the NVIDIA driver?"""

from __future__ import annotations

import re
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ..context import Context
from ..kernel_history import current, device_at, dropped, label, span
from ..model import Check, Device, Facts, Finding, Remedy, Status, Threshold

_NO_DISK = re.compile(r"(?:fd|sr|loop|ram|zram|nbd)\d")
"""Devices whose I/O errors mean nothing: a floppy that is not there, an ejected image."""


class Case(NamedTuple):
    """One kind of trouble. With a threshold it is FAIL from that many on, WARN below; `status` is then not used."""

    name: str
    what: str
    status: Status
    remedy: Remedy
    wanted: Callable[[Facts], bool] = lambda event: True
    threshold: str = ""


def _kind(*kinds: str) -> Callable[[Facts], bool]:
    return lambda event: event.get("kind") in kinds


def _mce(uncorrected: Optional[bool], before: bool = False) -> Callable[[Facts], bool]:
    return lambda event: event.get("uncorrected") is uncorrected and bool(event.get("previous_boot")) is before


_W, _F, _I = Status.WARN, Status.FAIL, Status.INFO
CASES: Tuple[Case, ...] = (
    Case("mce", "hardware error that was not corrected", _F, Remedy.REPLACE, _mce(True)),
    Case("mce", "corrected hardware error", _W, Remedy.INVESTIGATE, _mce(False)),
    Case("mce", "hardware error that ended the boot before", _W, Remedy.INVESTIGATE, _mce(True, before=True)),
    Case("edac", "memory error that ECC could not correct", _F, Remedy.REPLACE, _kind("UE")),
    Case("edac", "memory error corrected by ECC", _W, Remedy.REPLACE, _kind("CE"), "edac_corrected"),
    Case("hard_lockup", "CPU locked up with interrupts off", _F, Remedy.REBOOT),
    Case("soft_lockup", "CPU locked up", _W, Remedy.REBOOT, threshold="soft_lockups"),
    Case("rcu_stall", "CPU stalled (RCU)", _W, Remedy.INVESTIGATE),
    Case("hung_task", "task hung", _W, Remedy.INVESTIGATE),
    Case(
        "kernel_bug",
        "kernel fault: its state is no longer to be trusted",
        _F,
        Remedy.REBOOT,
        _kind("unable to handle", "kernel NULL pointer", "Bad page", "Bad rss"),
    ),
    Case("kernel_bug", "work queue locked up", _W, Remedy.INVESTIGATE, _kind("workqueue lockup")),
    Case("oom", "process killed for lack of memory", _W, Remedy.INVESTIGATE),
    Case("nvme_down", "NVMe controller down", _F, Remedy.REPLACE),
    Case("nvme_timeout", "NVMe command timed out", _W, Remedy.REBOOT, threshold="nvme_timeouts"),
    Case(
        "io_error",
        "disk read or write failed",
        _F,
        Remedy.REPLACE,
        lambda event: not _NO_DISK.match(str(event.get("device"))),
    ),
    Case("fs_error", "file system damaged or shut down", _F, Remedy.REBOOT),
    Case("readonly_remount", "file system made read-only after an error", _F, Remedy.REBOOT),
    Case("nvidia_driver", "NVIDIA driver could not start the GPU", _F, Remedy.REBOOT, _kind("init_failed")),
    Case("nvidia_driver", "NVIDIA driver lost the GPU", _F, Remedy.REBOOT, _kind("gpu_is_lost")),
    Case(
        "nvidia_driver",
        "NVIDIA driver could not use a GPU",
        _F,
        Remedy.REBOOT,
        _kind("probe_failed", "bar_invalid", "uvm_fatal"),
    ),
    Case("nvidia_driver", "another driver holds a GPU", _W, Remedy.FIX_CONFIG, _kind("driver_conflict")),
    Case("nvidia_driver", "GPU firmware (GSP) trouble", _W, Remedy.INVESTIGATE, _kind("gsp")),
    Case(
        "nvidia_driver",
        "a tool of another driver version asked the driver (harmless in itself)",
        _I,
        Remedy.NONE,
        _kind("api_mismatch"),
    ),
    Case("network_reset", "network device reset", _W, Remedy.INVESTIGATE),
)


def _device(context: Context, event: Facts, facts: Facts) -> Device:
    if event.get("pci"):
        return device_at(context, event["pci"], facts)
    name = event.get("device") or event.get("volume") or event.get("controller")
    return {"name": name} if name else {}


def _back(case: Case, device: Device) -> bool:
    """Does nvidia-smi list the GPU now that the driver failed to start earlier?"""
    return case.what.endswith("start the GPU") and bool(device.get("uuid")) and device.get("index") is not None


def _findings(context: Context, facts: Facts, case: Case, events: List[Facts]) -> Iterator[Finding]:
    groups: Dict[str, Tuple[Device, List[Facts]]] = {}
    for event in events:
        device = _device(context, event, facts)
        groups.setdefault(str(sorted(device.items(), key=str)), (device, []))[1].append(event)
    for device, lines in groups.values():
        parts = {part: lines[0].get(part) for part in ("kind", "uncorrected") if part in lines[0]}
        count = sum(int(line.get("number", 1)) for line in lines) + (
            dropped(facts, case.name, **parts) if len(groups) == 1 else 0
        )
        status, limit = case.status, context.threshold(case.threshold) if case.threshold else 0
        if case.threshold:
            status = Status.FAIL if count >= limit else Status.WARN
        back = _back(case, device)
        what = case.what + ("; nvidia-smi lists it now" if back else "")
        yield context.finding(
            Status.WARN if back else status,
            f"{label(device)}: {what}, {count} times {span(lines)}",
            remedy=case.remedy,
            device=device,
            measured=count,
            expected=limit or 0,
            unit="events",
            evidence=[line["text"] for line in lines[:4]],
        )


def evaluate(context: Context) -> Iterator[Finding]:
    """One finding for each kind of trouble and device since the last boot."""
    facts = context.facts("kernel")
    hours = context.threshold("window_hours")
    findings: List[Finding] = []
    for case in CASES:
        events = [event for event in current(facts, case.name, hours) if case.wanted(event)]
        findings += _findings(context, facts, case, events)
    yield from findings
    if not any(finding.status in (Status.WARN, Status.FAIL) for finding in findings):
        yield context.ok("no kernel errors since the last boot")


CHECK = Check(
    id="kernel_errors",
    title="Kernel errors",
    what="Memory and machine-check errors, lockups, hung tasks, disk and file system errors, driver start failures "
    "in the kernel log since the last boot.",
    why="A host that kills processes, stalls or loses its disk takes the job down, hours in, on every node.",
    remedy="Hardware, disk: replace the instance. Lockup, read-only file system, driver: reboot. Else read the lines.",
    source="Linux kernel sources (mm/oom_kill.c, watchdog, nvme, ext4, xfs, edac); Intel SDM 3, machine check",
    needs=("kernel",),
    wants=("nvidia_smi",),
    tags=("host", "kernel"),
    thresholds=(
        Threshold(
            "window_hours",
            0,
            "h",
            "how far back from the log's last line errors count; 0: to the last boot",
            "what broke stays broken until a reboot",
            0,
            8760,
        ),
        Threshold(
            "soft_lockups",
            3,
            "lockups",
            "soft lockups that block the node",
            "one can be a pause of the hypervisor; a CPU that keeps locking up is stuck",
            1,
            100000,
        ),
        Threshold(
            "nvme_timeouts",
            3,
            "timeouts",
            "NVMe time-outs of a device that block the node",
            "a single one is seen on healthy EBS volumes under throttling",
            1,
            100000,
        ),
        Threshold(
            "edac_corrected",
            100,
            "errors",
            "corrected memory errors that block the node",
            "AWS HyperPod's figure for correctable GPU memory errors per day",
            1,
            1000000,
        ),
    ),
    evaluate=evaluate,
)
