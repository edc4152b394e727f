"""Did the kernel report trouble with memory, CPUs, disks, file systems or the NVIDIA driver?"""

from __future__ import annotations

import re
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ..context import Context
from ..kernel_history import current, device_at, driver_loaded_after, dropped, label, recovered_after, span
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


def _on_a_disk(event: Facts) -> bool:
    return not _NO_DISK.match(str(event.get("device")))


def _mce(uncorrected: Optional[bool], before: bool = False) -> Callable[[Facts], bool]:
    return lambda event: event.get("uncorrected") is uncorrected and bool(event.get("previous_boot")) is before


_FAULTS = ("unable to handle", "kernel NULL pointer", "Bad page", "Bad rss", "oops", "Kernel panic")
NOT_STARTED = "NVIDIA driver could not start the GPU"
UNUSABLE = "NVIDIA driver could not use a GPU"
NOT_LOADED = "NVIDIA driver was built for another kernel"
NEEDS_RESET = "NVIDIA driver refuses to work with a GPU until it is reset"
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
    Case("kernel_bug", "kernel fault: its state is no longer to be trusted", _F, Remedy.REBOOT, _kind(*_FAULTS)),
    Case("kernel_bug", "work queue locked up", _W, Remedy.INVESTIGATE, _kind("workqueue lockup")),
    Case("oom", "process killed for lack of memory", _W, Remedy.INVESTIGATE),
    Case("nvme_down", "NVMe controller down", _F, Remedy.REPLACE),
    Case("nvme_timeout", "NVMe command timed out", _W, Remedy.REBOOT, threshold="nvme_timeouts"),
    Case("io_error", "disk read or write failed", _F, Remedy.REPLACE, _on_a_disk),
    Case("raid_failure", "disk left its RAID array", _F, Remedy.REPLACE),
    Case("fs_error", "file system damaged or shut down", _F, Remedy.REBOOT),
    Case("readonly_remount", "file system made read-only after an error", _F, Remedy.REBOOT),
    Case("nvidia_driver", NOT_STARTED, _F, Remedy.REBOOT, _kind("init_failed")),
    Case("nvidia_driver", "NVIDIA driver lost the GPU", _F, Remedy.REBOOT, _kind("gpu_is_lost", "uvm_fatal")),
    Case("nvidia_driver", UNUSABLE, _F, Remedy.REBOOT, _kind("probe_failed", "bar_invalid")),
    Case("nvidia_driver", NEEDS_RESET, _F, Remedy.RESET_GPU, _kind("reset_required")),
    Case("nvidia_driver", "NVIDIA driver does not support a GPU", _F, Remedy.UPDATE_SOFTWARE, _kind("unsupported")),
    Case("nvidia_driver", NOT_LOADED, _F, Remedy.UPDATE_SOFTWARE, _kind("not_loaded")),
    Case("nvidia_driver", "driver cannot read the NVLinks: CUDA hangs", _F, Remedy.REBOOT, _kind("nvlink_discovery")),
    Case("nvidia_driver", "GPU did not answer the driver's watchdog", _W, Remedy.INVESTIGATE, _kind("rc_watchdog")),
    Case("nvidia_driver", "IMEX daemon died: its NVLink domain is cut", _W, Remedy.FIX_CONFIG, _kind("imex_died")),
    Case("nvidia_driver", "another driver holds a GPU", _W, Remedy.FIX_CONFIG, _kind("driver_conflict")),
    Case("nvidia_driver", "GPU firmware (GSP) trouble", _W, Remedy.INVESTIGATE, _kind("gsp")),
    Case("nvidia_driver", "a tool of another driver version asked (harmless)", _I, Remedy.NONE, _kind("api_mismatch")),
    Case("network_reset", "network device reset", _W, Remedy.INVESTIGATE),
    Case("network_failed", "network device could not be reset", _F, Remedy.REBOOT),
    Case("efa_admin", "EFA device stopped answering commands", _F, Remedy.REBOOT, _kind("admin")),
    Case("efa_admin", "EFA driver could not start the device", _F, Remedy.REBOOT, _kind("probe_failed")),
)


def _device(context: Context, event: Facts, facts: Facts) -> Device:
    if event.get("pci"):
        return device_at(context, event["pci"], facts)
    name = event.get("device") or event.get("volume") or event.get("controller")
    return {"name": name} if name else {}


def _since_then(context: Context, facts: Facts, case: Case, device: Device, last: Facts) -> str:
    """What shows that the trouble with a GPU is over, or nothing."""
    smi, wanted = context.optional("nvidia_smi") or {}, context.expected.gpu_count or 0
    gpus = smi.get("gpus", [])
    whole = bool(wanted) and len(gpus) >= wanted and not smi.get("errors")
    if case.what in (NEEDS_RESET, NOT_LOADED) and driver_loaded_after(facts, last):
        return "; since then the driver was loaded anew, which resets the GPU"
    if case.what == NEEDS_RESET:
        actions = {str(gpu.get("recovery_action")).lower() for gpu in gpus if gpu.get("recovery_action")}
        if recovered_after(facts, last):
            return "; since then the driver asks for nothing more (Xid 154: None)"
        return "; nvidia-smi asks for no recovery now" if whole and actions == {"none"} else ""
    if case.name == "efa_admin" and last["kind"] == "probe_failed":
        whole = len((context.optional("efa_counters") or {}).get("devices", ())) >= (context.expected.efa_count or 1)
        return "; all EFA devices are there now" if whole else ""
    if case.what not in (NOT_STARTED, UNUSABLE, NOT_LOADED):
        return ""
    listed = device.get("uuid") and device.get("index") is not None if device.get("pci") else whole
    return "; nvidia-smi lists it now" if listed else ""


def _findings(context: Context, facts: Facts, case: Case, events: List[Facts]) -> Iterator[Finding]:
    groups: Dict[str, Tuple[Device, List[Facts]]] = {}
    for event in events:
        device = _device(context, event, facts)
        groups.setdefault(str(sorted(device.items(), key=str)), (device, []))[1].append(event)
    for device, lines in groups.values():
        parts = {part: lines[0].get(part) for part in ("kind", "uncorrected") if part in lines[0]}
        count = sum(int(line.get("number", 1)) for line in lines) + (
            dropped(facts, case.name, context.threshold("window_hours"), **parts) if len(groups) == 1 else 0
        )
        status, limit = case.status, context.threshold(case.threshold) if case.threshold else 0
        if case.threshold:
            status = Status.FAIL if count >= limit else Status.WARN
        over = _since_then(context, facts, case, device, lines[-1])
        yield context.finding(
            Status.WARN if over else status,
            f"{label(device)}: {case.what}, {count} times {span(lines)}{over}",
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
    what="Memory and machine-check errors, lockups, hung tasks, disk and file system errors, failures of the NVIDIA "
    "and EFA drivers in the kernel log since the last boot.",
    why="A host that kills processes, stalls or loses its disk takes the job down, hours in, on every node.",
    remedy="Hardware, disk: replace the instance. Lockup, read-only file system, driver: reboot. Else read the lines.",
    source="Linux kernel sources (mm, watchdog, nvme, ext4, xfs, edac, efa); Intel SDM 3; open GPU kernel modules",
    needs=("kernel",),
    wants=("nvidia_smi", "efa_counters"),
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
