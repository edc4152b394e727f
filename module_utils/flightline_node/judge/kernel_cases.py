"""What each sort of kernel event means for a node: the table behind the check kernel_errors.

The question behind each status: would an SRE take a paid node out of service for this? What stays broken until a
reboot, a reset or another disk is FAIL. What passes, or what a job or a process did to itself, is WARN; where its
repetition or its length shows that it does not pass, a threshold makes it FAIL.
"""

from __future__ import annotations

import re
from typing import Callable, NamedTuple, Optional, Tuple

from ..model import Facts, Remedy, Repeated, Status, Threshold

_NO_DISK = re.compile(r"(?:fd|sr|loop|ram|zram|nbd)\d")
"""Devices whose I/O errors mean nothing: a floppy that is not there, an ejected image."""


REPEATS = "repeats"
STALLS = ("soft_lockup", "rcu_stall", "hung_task")
FILE_SERVERS = ("lustre", "nfs")
"""Under these stands a call trace, which names the driver. They count for the node, whatever each trace shows."""


class Case(NamedTuple):
    """One kind of trouble.

    `status` holds for a single event. `threshold` names the number per device from which on what warns is FAIL; where
    none does, `once` says why. `longest`: the seconds (of the events' own `seconds`) from which on one alone is FAIL.
    `refused`: the number from which on no preflight starts a job on it unless the log shows that it passed, though a
    running node stays in service until `threshold` (docs/healing.md); 0: as for a running node.
    """

    name: str
    what: str
    status: Status
    remedy: Remedy
    wanted: Callable[[Facts], bool] = lambda event: True
    threshold: str = REPEATS
    longest: str = ""
    once: str = ""
    refused: int = 0

    @property
    def repeated(self) -> Repeated:
        """What its repetition comes to."""
        part = "node" if self.name in STALLS else "device"
        return Repeated(self.what, self.status, "" if self.once else self.threshold, part, self.once, self.refused)

    def under(self, driver: Optional[str]) -> Case:
        """The case as the call trace under it shows it: stuck in a driver, but for a task that waits for a server."""
        if not driver or self.name not in STALLS:
            return self
        waits = self.name == "hung_task" and driver in FILE_SERVERS
        status, remedy = (self.status, self.remedy) if waits else (Status.FAIL, Remedy.REBOOT)
        what = f"{self.what} in the {driver} driver"
        return self._replace(name=f"{self.name}_{driver}", what=what, status=status, remedy=remedy)


def _kind(*kinds: Optional[str]) -> Callable[[Facts], bool]:
    return lambda event: event.get("kind") in kinds


def _on_a_disk(event: Facts) -> bool:
    return not _NO_DISK.match(str(event.get("device")))


def _polled(event: Facts) -> bool:
    """The command had ended; only its interrupt was missed (drivers/nvme/host/pci.c)."""
    return "polled" in str(event.get("outcome"))


def _not_polled(event: Facts) -> bool:
    return not _polled(event)


def _said_or_in_a_driver(event: Facts) -> bool:
    """A task's state alone, as sysrq prints it of every one that sleeps, tells of nothing but where it sleeps."""
    return "seconds" in event or bool(event.get("driver"))


def _hot(event: Facts) -> bool:
    """A start under full load leaves a few."""
    return int(event["number"]) >= 10


def _mce(uncorrected: Optional[bool], before: bool = False) -> Callable[[Facts], bool]:
    return lambda event: event.get("uncorrected") is uncorrected and bool(event.get("previous_boot")) is before


_FAULTS = ("LBUG", "unable to handle", "kernel NULL pointer", "Bad page", "Bad rss", "oops", "Kernel panic")
NOT_STARTED = "NVIDIA driver could not start the GPU"
UNUSABLE = "NVIDIA driver could not use a GPU"
NOT_LOADED = "NVIDIA driver was built for another kernel"
MISMATCH = "NVIDIA libraries and kernel driver are of different versions"
UNLOADED = "NVIDIA driver left the kernel and was not loaded again"
NEEDS_RESET = "NVIDIA driver refuses to work with a GPU until it is reset"
GSP_DEAD = "GPU firmware (GSP) stopped: the GPU needs a reset"
GSP_TROUBLE = "GPU firmware (GSP) did not do a step that it must"
NVLINK_DEGRADED = "NVIDIA driver took a GPU's NVLinks out of use after an error"
MLX5_DEAD = "mlx5 device gave up: on P6 the NVLink switches are managed through it"
REFUSED = "kernel module refused for its signature"
SLOT_EMPTY = "PCIe device left its slot"
BOOT_BEFORE = "hardware error that ended the boot before"
BEYOND_END = "file system asks for blocks beyond the end of its disk"
SILENT_SERVER = "file server does not answer"
CARRIER = "InfiniBand port lost its carrier"
_NOT_PRESENT = "Card not present"
NETWORK_RESET = "network device reset"
EXPIRED = "network device's watchdog expired, by the driver's own count"
GSP_KINDS = (NEEDS_RESET, GSP_DEAD, GSP_TROUBLE)

_W, _F = Status.WARN, Status.FAIL
_JOBS = "what a job did to itself"
_SITES = "the site's own setting or detaching"
CASES: Tuple[Case, ...] = (
    Case("mce", "hardware error that was not corrected", _F, Remedy.REPLACE, _mce(True)),
    Case("mce", "corrected hardware error", _W, Remedy.INVESTIGATE, _mce(False), "edac_corrected", refused=10),
    Case("mce", BOOT_BEFORE, _W, Remedy.INVESTIGATE, _mce(True, before=True), once="many lines tell of one error"),
    Case("edac", "memory error that ECC could not correct", _F, Remedy.REPLACE, _kind("UE")),
    Case("edac", "memory error corrected by ECC", _W, Remedy.REPLACE, _kind("CE"), "edac_corrected", refused=3),
    Case("thermal", "CPU slowed down by heat", _W, Remedy.INVESTIGATE, _hot, "throttled", refused=100),
    Case("hard_lockup", "CPU locked up with interrupts off", _F, Remedy.REBOOT),
    Case(
        "soft_lockup", "CPU locked up", _W, Remedy.REBOOT, threshold="soft_lockups", longest="soft_lockup_s", refused=1
    ),
    Case("rcu_stall", "CPU stalled (RCU)", _W, Remedy.INVESTIGATE, threshold="rcu_stalls", refused=1),
    Case(
        "hung_task",
        "task hung",
        _W,
        Remedy.INVESTIGATE,
        _said_or_in_a_driver,
        threshold="hung_tasks",
        longest="hung_task_s",
        refused=1,
    ),
    Case("kernel_bug", "kernel fault: its state is no longer to be trusted", _F, Remedy.REBOOT, _kind(*_FAULTS)),
    Case("kernel_bug", "work queue locked up", _W, Remedy.INVESTIGATE, _kind("workqueue lockup"), refused=1),
    Case("kernel_warning", "kernel warning in a driver that training stands on", _W, Remedy.INVESTIGATE, refused=1),
    Case("nfs", SILENT_SERVER, _W, Remedy.INVESTIGATE, _kind("silent"), refused=1),
    Case("conntrack", "connections dropped: the table of tracked ones is full", _W, Remedy.FIX_CONFIG, once=_SITES),
    Case("netdev_stuck", "network device that is never removed", _W, Remedy.REBOOT),
    Case("carrier", CARRIER, _F, Remedy.INVESTIGATE, _kind("Lost")),
    Case(
        "peermem",
        "GPU memory freed under a transfer",
        _W,
        Remedy.INVESTIGATE,
        once="a killed job prints it by the thousand",
    ),
    Case("oom", "process killed for lack of memory", _W, Remedy.INVESTIGATE, once=_JOBS),
    Case("file_max", "no more files could be opened on the whole node", _W, Remedy.FIX_CONFIG, once=_JOBS),
    Case("library_crash", "a program crashed inside an NVIDIA or EFA library", _W, Remedy.INVESTIGATE, once=_JOBS),
    Case("nvme_down", "NVMe controller down", _F, Remedy.REPLACE),
    Case("nvme_timeout", "NVMe command timed out", _W, Remedy.REBOOT, _not_polled, "nvme_timeouts", refused=1),
    Case("nvme_timeout", "NVMe interrupt late", _W, Remedy.INVESTIGATE, _polled, "nvme_timeouts"),
    Case("io_error", "disk read or write failed", _F, Remedy.REPLACE, _on_a_disk),
    Case("beyond_end", BEYOND_END, _F, Remedy.REPLACE, _on_a_disk),
    Case("raid_failure", "disk left its RAID array", _F, Remedy.REPLACE),
    Case("fs_error", "file system damaged or shut down", _F, Remedy.REBOOT),
    Case("readonly_remount", "file system made read-only after an error", _F, Remedy.REBOOT),
    Case("pcie_slot", SLOT_EMPTY, _F, Remedy.REBOOT, _kind("Link Down")),
    Case(
        "pcie_slot",
        "PCIe slot is empty, as after a volume was detached",
        _W,
        Remedy.INVESTIGATE,
        _kind(_NOT_PRESENT),
        once=_SITES,
    ),
    Case("nvidia_driver", NOT_STARTED, _F, Remedy.REBOOT, _kind("init_failed")),
    Case("nvidia_driver", "NVIDIA driver lost the GPU", _F, Remedy.REBOOT, _kind("gpu_is_lost", "uvm_fatal")),
    Case("nvidia_driver", UNUSABLE, _F, Remedy.REBOOT, _kind("probe_failed", "bar_invalid")),
    Case("nvidia_driver", NEEDS_RESET, _F, Remedy.RESET_GPU, _kind("reset_required")),
    Case("nvidia_driver", GSP_DEAD, _F, Remedy.RESET_GPU, _kind("gsp_dead")),
    Case("nvidia_driver", NVLINK_DEGRADED, _F, Remedy.RESET_GPU, _kind("nvlink_degraded")),
    Case("nvidia_driver", "NVIDIA driver does not support a GPU", _F, Remedy.UPDATE_SOFTWARE, _kind("unsupported")),
    Case("nvidia_driver", NOT_LOADED, _F, Remedy.UPDATE_SOFTWARE, _kind("not_loaded")),
    Case("nvidia_driver", "driver cannot read or train the NVLinks", _F, Remedy.REBOOT, _kind("nvlink_discovery")),
    Case(
        "nvidia_driver",
        "GPU did not answer the driver's watchdog",
        _W,
        Remedy.INVESTIGATE,
        _kind("rc_watchdog"),
        refused=1,
    ),
    Case(
        "nvidia_driver",
        "IMEX daemon died: its NVLink domain is cut",
        _W,
        Remedy.FIX_CONFIG,
        _kind("imex_died"),
        refused=1,
    ),
    Case("nvidia_driver", "another driver holds a GPU", _W, Remedy.FIX_CONFIG, _kind("driver_conflict"), refused=1),
    Case("nvidia_driver", GSP_TROUBLE, _F, Remedy.RESET_GPU, _kind("gsp")),
    Case(
        "nvidia_driver",
        MISMATCH,
        _W,
        Remedy.UPDATE_SOFTWARE,
        _kind("api_mismatch"),
        once="one container with libraries of its own asks again and again",
        refused=1,
    ),
    Case("nvidia_driver", UNLOADED, _F, Remedy.REBOOT, _kind("unloaded")),
    Case("module_refused", REFUSED, _F, Remedy.UPDATE_SOFTWARE),
    Case("network_reset", NETWORK_RESET, _W, Remedy.INVESTIGATE, threshold="network_resets", refused=1),
    Case("ena_expired", EXPIRED, _W, Remedy.INVESTIGATE, threshold="network_resets", refused=1),
    Case("network_failed", "network device could not be reset or started", _F, Remedy.REBOOT),
    Case("efa_admin", "EFA device stopped answering commands", _F, Remedy.REBOOT, _kind("admin")),
    Case("efa_admin", "EFA driver could not start the device", _F, Remedy.REBOOT, _kind("probe_failed")),
    Case("efa_admin", "EFA driver was built for another kernel", _F, Remedy.UPDATE_SOFTWARE, _kind("not_loaded")),
    Case("efa_refused", "EFA device refused a command", _W, Remedy.INVESTIGATE, refused=3),
    Case("mlx5", MLX5_DEAD, _F, Remedy.REBOOT, _kind("dead")),
    Case("mlx5", "mlx5 queue stood still", _W, Remedy.INVESTIGATE, _kind("tx_timeout"), "network_resets", refused=1),
    Case("mlx5", "mlx5 device did not answer a command of its driver", _F, Remedy.REBOOT, _kind("command")),
    Case("mlx5", "cable pulled out of an mlx5 port, or never plugged in", _W, Remedy.INVESTIGATE, _kind("unplugged")),
    Case("mlx5", "mlx5 device hot, or in doubt of its health", _W, Remedy.INVESTIGATE, _kind("hot"), refused=1),
    Case("mlx5", "mlx5 device short of power", _W, Remedy.INVESTIGATE, _kind("power")),
)

THRESHOLDS: Tuple[Threshold, ...] = (
    Threshold("window_hours", 0, "h", "how far back from the log's last line errors count; 0: to the last boot",
        "what broke stays broken until a reboot", 0, 8760),
    Threshold("soft_lockups", 3, "lockups", "soft lockups that block the node",
        "one can be a pause of the hypervisor; a CPU that keeps locking up is stuck", 1, 100000),
    Threshold("soft_lockup_s", 60, "s", "length of one soft lockup that blocks the node",
        "a pause is said once, with some 22 s (twice kernel.watchdog_thresh); the count goes on while the CPU is stuck",
        20, 1000000),
    Threshold("rcu_stalls", 5, "stalls", "RCU stalls that block the node",
        "each is said after 60 s or more (rcu_cpu_stall_timeout, Ubuntu): five are minutes, no pause of the hypervisor",
        1, 100000),
    Threshold("hung_tasks", 20, "reports", "reports of hung tasks that block the node",
        "a storage pause leaves up to ten (kernel.hung_task_warnings; then the kernel is silent); none is published",
        1, 100000),
    Threshold("hung_task_s", 600, "s", "time for which one task hangs that blocks the node",
        "five times the kernel's own limit of 120 s: what waits so long does not come back without a reboot",
        60, 1000000),
    Threshold("throttled", 1000, "events", "times that one CPU was slowed down by heat that block the node",
        "the driver's own count since the boot; a start under full load leaves a few", 1, 1000000000),
    Threshold("nvme_timeouts", 3, "timeouts", "NVMe time-outs of a device that block the node",
        "a single one is seen on healthy EBS volumes under throttling", 1, 100000),
    Threshold("network_resets", 20, "resets", "resets or stalls of one network device that block the node",
        "a sound device is reset once in a while, by maintenance under the instance; each cuts all connections for 1 s",
        1, 100000),
    Threshold(REPEATS, 20, "events", "events of one kind and device that block the node although one only warns",
        "as network_resets: a sound part has one in a while, what comes twenty times since the boot does not pass",
        1, 100000),
    Threshold("edac_corrected", 100, "errors", "corrected memory errors that block the node",
        "AWS HyperPod's figure for correctable GPU memory errors per day", 1, 1000000),
)  # fmt: skip
