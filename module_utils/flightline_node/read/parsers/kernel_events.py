"""The kernel lines that mean something: what to look for, how the line starts, what it says.

Every pattern is anchored at the start of the kernel's message, so that a line that only quotes
such words is not taken for one. Shapes after: NVIDIA Xid and fabric manager guides, the open GPU
kernel modules (nvswitch print macros, NVLink5 line of Xid 144-150), Linux 5.10 to 6.12 sources
(mm/oom_kill.c, kernel/watchdog.c, kernel/hung_task.c, block/blk-core.c, drivers/nvme/host, fs/ext4, fs/xfs,
drivers/edac, drivers/pci/pcie/aer.c, drivers/firmware/efi/cper.c), the ena and efa drivers, Lustre 2.15.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, List, Match, Optional, Tuple

from .kernel_fields import PCI, Fields, aer, dpc, edac, fallen, lower_pci, mce, sxid, xid
from .lazy import Lazy


@dataclass(frozen=True)
class EventPattern:
    """One event: the list it goes to, its needles, its shape, and which groups tell events apart.

    `hints`: one of them is in every such message; asked first, because a storm of other lines with the same
    needle must not cost a match each. `fields` turns the match into facts; an empty list name means that the
    line only names something for the lines after it (see kernel.py).
    """

    name: str
    needles: Tuple[bytes, ...]
    pattern: Lazy
    key: Tuple[str, ...] = ()
    fields: Optional[Callable[[Match[str]], Fields]] = None
    extra: Tuple[Tuple[str, str], ...] = ()
    hints: Tuple[str, ...] = ("",)

    def facts(self, match: Match[str]) -> Fields:
        """What the line says, beside its time and text."""
        found: Fields = dict(self.extra)
        found.update((name, value) for name, value in match.groupdict().items() if value is not None)
        if self.fields:
            found.update(self.fields(match))
        return found


def _event(
    name: str,
    needles: str,
    pattern: str,
    *,
    key: str = "",
    fields: Optional[Callable[[Match[str]], Fields]] = None,
    hints: str = "",
    flags: int = 0,
    **extra: str,
) -> EventPattern:
    """An event: needles and hints with a bar between, the key's groups with a blank. extra: facts of every match."""
    sought = tuple(needle.encode() for needle in needles.split("|"))
    shape = Lazy(pattern.replace("{PCI}", PCI), flags)
    return EventPattern(name, sought, shape, tuple(key.split()), fields, tuple(extra.items()), tuple(hints.split("|")))


# Without what stands around them: grep --color and dmesg --color put codes there.
NVRM = (b"NVRM",)
SXID = (b"nvidia-nvswitch",)

_SEVERITY = r"(?P<severity>Correct(?:ed|able)|Uncorrect(?:ed|able)(?: \((?:Non-)?Fatal\))?|(?:Non-)?Fatal)"


_MLX5 = r"mlx5_core (?P<pci>{PCI})(?: \S{1,32})?: (?:\S{1,48}:\d{1,6}:(?:\(pid \d{1,9}\):)? ?)?"


def _mlx5(kind: str, pattern: str) -> EventPattern:
    """drivers/net/ethernet/mellanox/mlx5/core: health.c, main.c, cmd.c, events.c, en_main.c, en/reporter_tx.c."""
    return _event("mlx5", "mlx5_core", _MLX5 + "(?:" + pattern + ")", key="pci", kind=kind)


MLX5: Tuple[EventPattern, ...] = (
    _mlx5("recovered", r"health recovery succeeded"),
    _mlx5(
        "hot",
        r"Health issue observed, .{1,80}severity\([4-7]\)|High temperature on sensors"
        r"|synd 0x10: |Port module event.{0,60}High Temperature",
    ),
    _mlx5("power", r".{0,40}Detected insufficient power"),
    _mlx5(
        "dead",
        r"device's health compromised|synd 0x(?!0+\b)[0-9a-f]{1,2}: |Fatal error \d{1,9} detected"
        r"|Health issue observed, .{1,80}severity\([0-3]\)"
        r"|handling bad device|health recovery (?:failed|flow aborted)|.{0,40}nic state is invalid"
        r"|Firmware over \d{1,9} MS|.{0,40}FW initialization, timeout|.{0,40}failed with error code -\d"
        r"|mlx5_(?:init|load)_one failed|probe_one.{0,40} failed|Driver is in error state|device is in internal error",
    ),
    _mlx5("tx_timeout", r"[RT]X timeout"),
    _mlx5("unplugged", r"Port module event.{0,40}Cable unplugged"),
    _mlx5(
        "command",
        r".{1,80} timeout\. Will cause a leak of a command resource|.{0,60}command.{0,40} time-?out"
        r"|.{0,60}No done completion",
    ),
    # The end of that line alone, where what pasted the log broke it.
    _event(
        "mlx5", "Will cause a leak of a c", r"\w{3,40}\(0x[0-9a-f]{1,4}\) timeout\. Will cause a leak", kind="command"
    ),
)
"""The NVLink switches of a P6 node are managed through ConnectX bridges; without one nobody controls the fabric."""


def _lustre(kind: str, pattern: str) -> EventPattern:
    """Lustre 2.15 to 2.17: lnet, lnet/klnds, lustre/ptlrpc, lustre/osc. Older ones number the messages ("11-0: ")."""
    return _event("lustre", "LustreError|LNet|Lustre: ", pattern, kind=kind)


_LNET = (
    r"[Tt]imed out|[Tt]ime-?out|No (?:usable )?route|[Nn]etwork is unreachable|is unhealthy|Connection refused"
    r"|was reset|reset our connection|unexpected network error|Unexpected error -\d|closed by peer"
    r"|Failed to find EFA IB device|Failed to initialize device|received bad (?:FINV|RX|TX)|Closing conn"
    r"|failed to find UP interface"
)
LUSTRE_TROUBLE: Tuple[EventPattern, ...] = (
    _lustre("refused", r"LustreError: (?:\d+-\d+: )?\S{1,120}: operation \w{1,40} to node .{1,120} failed: rc = -\d"),
    _lustre("corrupt", r"LustreError: .{0,200}?BAD (?:READ|WRITE) CHECKSUM"),
    # kefalnd_cb.c: a transfer over EFA that was given up, or ended with an error of the device.
    _lustre("efa", r"LNet(?:Error)?: .{0,200}?(?:cancel+ing TX|force_cancel_tx|completion with err)"),
    _lustre("lnet", r"LNet(?:Error)?: .{0,240}?(?:" + _LNET + ")"),
    _lustre("slow", r"Lustre: .{0,200}?Request sent has (?:timed out|failed)"),
)


def _driver(kind: str, pattern: str, hints: str = "") -> EventPattern:
    shape = "NVRM:.*?(?:" + pattern + ")"
    return _event("nvidia_driver", "NVRM", shape, fields=fallen, hints=hints or pattern, kind=kind)


def _built_for_another_kernel(name: str, module: str) -> EventPattern:
    """kernel/module: built for another kernel. Of the driver's own module only: without it there is no device."""
    said = "version magic '|version of symbol |Unknown symbol |no symbol version for "
    shape = r": (?:version magic '|disagrees about version of symbol |Unknown symbol |no symbol version for )"
    return _event(name, said, module + shape, kind="not_loaded")


def _not_started(name: str, driver: str, kind: str = "") -> EventPattern:
    """drivers/base/dd.c, to Linux 6.10 and since."""
    shape = driver + r"(?:: probe of| (?={PCI}: probe with driver)) ?(?P<pci>{PCI}).{0,30} failed with error -\d"
    extra = (("kind", kind),) if kind else ()
    return EventPattern(name, (b"failed with error -",), Lazy(shape.replace("{PCI}", PCI)), ("pci",), extra=extra)


RULES: Tuple[EventPattern, ...] = (
    _event(
        "xids",
        "NVRM",
        # Who posts a log may put dots or letters in place of the address: the code still says what it is.
        r"NVRM: Xid \((?:PCI:)?(?P<pci>{PCI}|[\w:.*#<>?\[\]-]{1,48}(?=\)))(?:[ ,]+GPU-I:(?P<gpu_instance>\w{1,8}))?"
        r"(?:[ ,]+GPU-CI:(?P<compute_instance>\w{1,8}))?[^()]{0,60}\) ?: *(?P<code>\d{1,5})\b(?P<rest>.*)",
        key="code pci",
        fields=xid,
        flags=re.I,
    ),
    _event("unread_xids", "NVRM", r"NVRM: (?:GPU\d{1,3} )?Xid\b", hints="Xid"),
    _event(
        "sxids",
        "nvidia-nvswitch",
        r"nvidia-nvswitch(?P<switch>\d{1,4}): SXid \((?:PCI:)?(?P<pci>{PCI})\): *(?P<code>\d{1,6})\b(?P<rest>.*)",
        key="code pci",
        fields=sxid,
        flags=re.I,
    ),
    _event("unread_sxids", "nvidia-nvswitch", r"nvidia-nvswitch\d*: SXid \("),
    # kernel-open/nvidia/linux_nvswitch.c
    _event(
        "nvswitch_failed",
        "nvidia-nvswitch",
        r"nvidia-nvswitch(?P<switch>\d{1,4})?: ?(?:Failed (?:to (?:initialize|enable|request|map)|during) "
        r"|failed to get IRQ|Interrupts disabled to avoid a storm|unrecoverable error in ISR"
        r"|(?P<version>Version mismatch))",
        key="switch version",
        hints="Failed |failed |Interrupts disabled|unrecoverable|Version mismatch",
    ),
    _event("fallen_off_bus", "NVRM", r"NVRM:.*(?:fallen off|GPU lost from) the bus", fields=fallen, hints="the bus"),
    _event("fallen_off_bus", "GPU has fallen off the bus", r"nvidia.*GPU has fallen off the bus", fields=fallen),
    _event(
        "gpu_uuids",
        "NVRM",
        r"NVRM: GPU at PCI:(?P<pci>{PCI}): (?P<uuid>GPU-[0-9a-fA-F-]{36})",
        key="pci",
        fields=lower_pci,
    ),
    _event("", "NVRM", r"NVRM: The NVIDIA GPU (?P<pci>{PCI})"),
    _event(
        "driver_loads",
        "NVRM",
        r"NVRM: loading NVIDIA UNIX .*Kernel Module(?: for \S+)?  ?(?P<version>\d{2,4}\.\d{1,4}(?:\.\d{1,4})?)",
    ),
    _driver(
        "init_failed",
        "RmInitAdapter failed|rm_init_adapter failed|bailing out of RmInitAdapter|failed to initialize module"
        "|Fatal Error while attempting to resize PCIe BARs|failed to wait for GFW boot"
        "|failed to execute (?:Booter|FWSEC)|(?:found|buffer) for FWSEC|RISC-V core is not enabled|valid ROM signature"
        "|need firmware to initialize GSP|signature for fuse version",
        "RmInitAdapter|failed to initialize module|resize PCIe BARs|rm_init_adapter failed|GFW boot|failed to execute"
        "|FWSEC|RISC-V|ROM sig|need firmware|fuse",
    ),
    _driver("api_mismatch", "API mismatch"),
    _driver(
        "probe_failed",
        "routine failed|were initialized|No NVIDIA (?:PCI |graphics )?(?:GPU|devices|adapters?) (?:found|probed)"
        "|Cannot use this GPU|Failed to re-allocate BAR1|pci_enable_device failed|Device is currently unavailable"
        "|Attempting to remove device|region doesn't exist",
        "routine failed|were initialized|No NVIDIA |Cannot use this GPU|re-allocate BAR1|pci_enable_device failed"
        "|unavailable|to remove|region",
    ),
    _driver("driver_conflict", "probe routine was not called"),
    # The driver prints both lines at once; only the second names the GPU.
    _driver(
        "bar_invalid",
        r"assigned to your NVIDIA device is invalid|BAR\d is \d{1,12}M @ 0x[0-9a-f]{1,16} \(PCI:{PCI}",
        "assigned to your NVIDIA device is invalid| (PCI:",
    ),
    _driver("uvm_fatal", "uvm encountered global fatal error"),
    # 0xf and, below, 0x62 are the codes of these errors in nvstatuscodes.h.
    _driver(
        "gpu_is_lost",
        r"NV_ERR_GPU_IS_LOST|API_GPU_ATTACHED_SANITY_CHECK failed|GPU is detached|GPU reg read ?: 0x[fF]{8}\b"
        r"|rpcSendMessage failed with status 0x0000000f|fail.{0,200}status=0x0000000f",
        "NV_ERR_GPU_IS_LOST|status=0x0000000f|API_GPU_ATTACHED_SANITY_CHECK|GPU reg read|rpcSendMessage failed"
        "|is detached",
    ),
    _driver(
        "reset_required",
        r"NV_ERR_RESET_REQUIRED|GPU marked for reset|GspRm\w{1,20} failed: .*status=0x00000062",
        "NV_ERR_RESET_REQUIRED|GPU marked for reset|status=0x00000062",
    ),
    # The lines are broken as the driver prints them: "by the" may be the end of one.
    _driver(
        "unsupported",
        "is not supported by (?:open|the NVIDIA|the *$)|supported through the NVIDIA"
        "|requires use of the NVIDIA open kernel modules",
        "is not supported by|supported through the NVIDIA|requires use of the NVIDIA open",
    ),
    _driver(
        "nvlink_discovery",
        "ostRxDetLinkMask failed|Failed to update Rx Detect Link mask|Timedout .{0,40}training complete",
        "LinkMask failed|Rx Detect Link mask|Timedout",
    ),
    # kernel_gsp.c: after each of these the driver marks the GPU for a reset, with Xid 119, 120 or 175.
    _driver(
        "gsp_dead",
        r"(?i:GSP RM heartbeat timed out|Heartbeat timed out, currentTimeMs|GSP(?:-RM| core) (?:unresponsive|is slow)"
        r"|GSP-?CrashCat Report|Back to back GSP RPC timeout|Gpu marked for reset|Memory Subsystem Error detected"
        r"|Fatal GSP-FMC Error|Failed to boot GSP|Cannot initialize GSP firmware RM"
        r"|IRQSTAT_FATAL_ERROR|GPU (?:is likely|may be) in a bad state"
        r"|signal from GSP (?:that PMU has halted|to trigger bugcheck)"
        # kernel_falcon.c: the core's trace, which the driver asks for where an RPC of it got no answer.
        r"|kflcn(?:CoreDump|Dump(?:Core|Trace))"
        r"|Timed out waiting for GSP (?:falcon reset|reset PLM)|LibOS heartbeat timed out)",
        "kflcn|bad state|eartbeat timed out|unresponsive|rash|RASH|marked for reset|GSP RPC timeout|ubsystem|GSP",
    ),
    # kernel_nvlink: after an error that could not be contained the GPU is used without its links, if at all.
    _driver(
        "nvlink_degraded",
        "uncontained NVLINK error|marked Degraded|lead to NVLINK Degradation",
        "uncontained NVLINK error|marked Degraded|NVLINK Degradation",
    ),
    # nvlink_linux.c: the last word of the module, and its first.
    _event("nvidia_driver", "Nvlink Core", r"nvidia-nvlink: Unregistered Nvlink Core", kind="unloaded"),
    _event("driver_loads", "Nvlink Core", r"nvidia-nvlink: Nvlink Core is being initialized(?!.*NVRM)"),
    _driver("imex_died", "nvidia-imex daemon shutdown detected"),
    _driver("rc_watchdog", "GPU is probably locked"),
    _not_started("nvidia_driver", "nvidia", "probe_failed"),
    _built_for_another_kernel("nvidia_driver", "nvidia"),
    _built_for_another_kernel("efa_admin", "efa"),
    # kernel/module/signing.c names no module; the second is kernel_lockdown(7).
    _event(
        "module_refused",
        "unsigned module |module with un",
        r"(?:Loading of (?:unsigned module|module with un\w+ \w+) is rejected"
        r"|Lockdown: .{1,32}: unsigned module loading is restricted)",
        flags=re.I,
    ),
    # The older wording is that of Linux 5.7 to 5.17.
    _event(
        "nvidia_driver",
        "naccessible",
        r"nvidia {PCI}: (?:Unable to change power state .{1,40}device inaccessible"
        r"|can't change power state .{1,40}config space inaccessible)",
        fields=fallen,
        kind="gpu_is_lost",
    ),
    # "GspRmControl failed" and its like say that a call was refused, as any call may be: no word on the firmware.
    _event(
        "nvidia_driver",
        "NVRM",
        r"NVRM:(?!.{0,80}GspRm\w{1,20} failed|.{0,200}(?:NOT_SUPPORTED|0x0{6}56)).*?"
        r"(?:[Tt]imeout waiting for .{0,40}GSP"
        r"|(?i:GSP).{0,80}?(?:[Tt]imeout|TIMEOUT|[Ff]ail|heartbeat|crash|CRASH))",
        fields=fallen,
        kind="gsp",
        hints="GSP|gsp|Gsp",
    ),
    # "Kill process 7 (x) score 9 or sacrifice child" is the wording to Linux 4.20, with a "Killed" line after it.
    _event(
        "oom",
        "Killed process |Kill process ",
        r"(?:(?P<cgroup>Memory cgroup )?[Oo]ut of memory(?: \([^)]*\))?: )?"
        r"Kill(?:ed)? process (?P<pid>\d{1,9}),? (?:UID \d{1,10},? )?\((?P<process>[^)]{0,64})\)",
        key="process",
        fields=lambda match: {"pid": int(match.group("pid")), "cgroup": match.group("cgroup") is not None},
    ),
    _event(
        "soft_lockup",
        "BUG: ",
        r"(?:NMI )?(?:watchdog: )?BUG: soft lockup - CPU#(?P<cpu>\d{1,5}) stuck for (?P<seconds>\d{1,9})s!",
        fields=lambda match: {"cpu": int(match.group("cpu")), "seconds": int(match.group("seconds"))},
    ),
    _event(
        "hard_lockup",
        " LOCKUP on cpu",
        r"(?:NMI )?(?:watchdog: )?(?:CPU\d{1,5}: )?Watchdog detected hard LOCKUP on cpu",
    ),
    _event(
        "kernel_bug", "BUG: ", r"BUG: (?P<kind>unable to handle|kernel NULL pointer|Bad page|Bad rss|workqueue lockup)"
    ),
    # die() of x86 (newer kernels begin it with "Oops: ") and arm64: message, error code, count.
    _event(
        "kernel_bug",
        "[#",
        r"(?:Oops|Internal error|general protection|invalid opcode|invalid TSS|divide error|double fault"
        r"|stack segment|segment not present|alignment check|control protection|int3|bounds|overflow)"
        r"\b.{0,200}?: ?[0-9a-f]{4,16} \[#\d",
        kind="oops",
    ),
    # arch/x86/mm/fault.c, page_fault_oops: the address alone on its line sums up an oops whose head has scrolled away.
    _event("kernel_bug", "CR2: ", r"CR2: [0-9a-f]{16}$", kind="oops"),
    # libcfs's end of a failed assertion (lbug_with_loc): the thread never goes on, nor what waits for its locks.
    _event("kernel_bug", " LBUG", r"LustreError: .{1,200}\(\)\) (?P<kind>LBUG)$"),
    # In the log of the boot that it ended: the console's output, or a crash dump's.
    # Kernels before 3.19 ended without "not syncing" where an MCE had corrupted the CPU's context.
    _event("kernel_bug", "Kernel panic", "(?P<kind>Kernel panic)(?: - not syncing|: )"),
    _event(
        "hung_task",
        "INFO: |blocked for more than",
        r"(?:INFO: )?task (?P<process>.{1,64}?):(?P<pid>\d{1,9}) (?:<[^>]*> )?"
        r"blocked (?:in I/O wait )?for more than (?P<seconds>\d{1,9}) seconds",
        key="process",
        fields=lambda match: {"pid": int(match.group("pid")), "seconds": int(match.group("seconds"))},
    ),
    # kernel/sched/core.c, sched_show_task: under the line above, or where that was cut off.
    _event(
        "hung_task",
        "state:D",
        r"task:(?P<process>.{1,64}?) +state:D .{0,60}?pid: ?(?P<pid>\d{1,9})",
        key="process",
        fields=lambda match: {"pid": int(match.group("pid"))},
    ),
    _event("rcu_stall", "INFO: ", r"(?:rcu: )?INFO: rcu\w* (?:self-)?detected .*stall"),
    _event(
        "nvme_timeout",
        "QID ",
        r"nvme (?P<device>nvme\d+|{PCI}): I/O .{0,80}?QID \d+ timeout(?!, disable)(?:, (?P<outcome>.{0,60}))?",
        key="device",
    ),
    _event(
        "nvme_down",
        "controller is down; will reset|Removing after probe failure|Disabling device after reset failure"
        "|Device not ready; aborting|timeout, disable controller",
        r"nvme (?P<device>nvme\d+|{PCI}): (?:controller is down; will reset|Removing after probe failure"
        r"|Disabling device after reset failure|Device not ready; aborting|I/O .{0,80}timeout, disable controller)",
        key="device",
    ),
    # blk_errors of block/blk-core.c, without what a device refuses by rights. A target's error counts for reads
    # and writes only: disks answer so to a discard they do not know. Nor does a discard (3), a secure erase (5) or
    # a write of zeroes (9: the kernel then writes them itself) that fails with an I/O error lose data.
    _event(
        "io_error",
        "I/O error|critical medium error|critical target error|timeout error|protection error"
        "|device offline error|recoverable transport error",
        r"(?:blk_update_request: |print_req_error: |end_request: )?(?:Buffer )?"
        r"(?:I/O(?! error,.{0,80} op 0x[359]:\()|critical medium|timeout|device offline|protection"
        r"|recoverable transport|critical target(?=.{0,80} op 0x[01]:\()) error,? "
        r"(?:on )?dev(?:ice)? (?P<device>[\w!-]{1,32}),(?P<what>.{0,100})",
        key="device",
    ),
    _event(
        "io_error",
        "no available path",
        (r"block (?P<device>[\w!-]{1,32}): no available path - failing I/O"),
        key="device",
    ),
    # fs/btrfs/volumes.c counts over the life of the volume: what is printed as an error has just grown.
    _event(
        "io_error",
        " errs: wr ",
        r"BTRFS error \(device (?P<device>[\w!-]{1,32})[^)]{0,40}\): bdev \S{1,64} errs: wr \d",
        key="device",
    ),
    _event(
        "readonly_remount",
        "forced readonly",
        r"BTRFS \w{1,8} \(device (?P<device>[\w!-]{1,32})[^)]{0,40}\).{0,40}forced readonly",
        key="device",
    ),
    _event(
        "nfs",
        " not responding, |ock reclaim failed",
        r"(?:nfs: server (?P<server>\S{1,253}) not responding, |NFS: \w{1,40}: [Ll]ock reclaim failed)",
        key="server",
        kind="silent",
    ),
    _event("nfs", "nfs: server ", r"nfs: server (?P<server>\S{1,253}) OK", key="server", kind="answers"),
    # arch/x86/kernel/cpu/mce/therm_throt.c, drivers/thermal/intel
    _event(
        "thermal",
        "above threshold, cpu clock ",
        r"(?:mce: )?(?P<device>CPU\d{1,5}): (?:Core|Package) temperature (?:is )?above threshold, "
        r"cpu clock (?:is )?throttled \(total events = (?P<number>\d{1,18})\)",
        key="device",
    ),
    # net/core/dev.c says so every ten seconds: a network namespace is not freed, and no other can be made or removed.
    _event(
        "netdev_stuck", "unregister_netdevice: w", r"unregister_netdevice: waiting for (?P<device>\S{1,16}) to become"
    ),
    # systemd-networkd tells of an InfiniBand port where the kernel's own log does not.
    _event(
        "carrier",
        " carrier",
        r"(?:systemd-networkd\[\d{1,9}\]: )?(?P<device>ib\w{1,15}): (?P<kind>Lost|Gained) carrier",
        key="device kind",
    ),
    _event("peermem", "invalid context, s", r"nvidia[-_]peermem.{0,60}detected invalid context"),
    _event("conntrack", "table full, dropping", r"(?:(?:nf|ip)_conntrack: )+table full, dropping packet"),
    # drivers/md/raid0.c prints no colon between level and array.
    _event(
        "raid_failure",
        " Disk failure on ",
        r"md/raid[\w/-]{0,8}?:?(?P<array>md\w{0,30}): Disk failure on (?P<device>[\w!-]{1,32})",
        key="device",
    ),
    _event(
        "fs_error",
        "XFS (|EXT4-fs error",
        r"(?:EXT4-fs error \(device (?P<device>[\w-]{1,32})\)|XFS \((?P<volume>[\w-]{1,32})\): .*?"
        r"(?:I/O error|[Ss]hutting down filesystem|Filesystem has been shut down|corruption detected|CRC error"
        r"|Internal error|recovery failed|log mount failed|run xfs_repair|Failing async write|writeback error))",
        key="device volume",
        flags=re.I,
    ),
    # fs/jbd2/journal.c: "-8" is the journal's inode. After it the file system takes no more writes.
    _event("fs_error", "Aborting journal", r"Aborting journal on device (?P<device>[\w!-]{1,32}?)-\d{1,9}\."),
    _event("fs_error", "JBD2: ", r"JBD2: I/O error when updating journal superblock for (?P<device>[\w!-]{1,32}?)-\d"),
    # Not "EXT4-fs (": every mount begins so.
    _event(
        "fs_error",
        "I/O error while writing superblock|error loading journal|convert unwritten extents"
        "|block allocation failed|This should not happen!!",
        r"EXT4-fs \((?P<device>[\w!-]{1,32})\): (?:I/O error while writing superblock|error loading journal"
        r"|failed to convert unwritten extents|Delayed block allocation failed|This should not happen!!)",
        key="device",
    ),
    _event(
        "readonly_remount",
        "Remounting filesystem read-only",
        r"(?:[\w-]{1,16}:? )?(?:\((?:device )?(?P<device>[\w-]{1,32})[^)]{0,40}\).{0,80}?)?"
        "Remounting filesystem read-only",
        key="device",
    ),
    _event("", "Error records from previous boot", r"BERT: Error records from previous boot"),
    _event("mce", "[Hardware Error]", r"(?:mce: |BERT: )?(?P<sequence>\{\d+\})?\[Hardware Error\].*", fields=mce),
    # mm/memory-failure.c: a page with an uncorrectable error was taken out of use, and its users were killed.
    _event(
        "mce",
        "Memory failure: ",
        r"(?P<sequence>)Memory failure: 0x[0-9a-f]{1,16}: "
        r"(?:recovery action for|Sending SIGBUS|Killing |unrecoverable)",
        fields=lambda match: {"uncorrected": True},
    ),
    _event(
        "edac",
        "EDAC MC",
        r"EDAC (?P<controller>MC\d+): (?P<number>\d{1,9}) (?P<kind>CE|UE)\b",
        key="controller kind",
        fields=edac,
    ),
    _event(
        "aer",
        "PCIe Bus Error: ",
        r"(?P<driver>\S{1,40}) (?P<pci>{PCI}): (?:AER: )?PCIe Bus Error: severity=" + _SEVERITY,
        key="severity pci",
        fields=aer,
        shape="detail",
    ),
    _event(
        "aer",
        " error received| error message received| errors received",
        r"(?P<driver>\S{1,40}) {PCI}: AER: (?:Multiple )?" + _SEVERITY + r" error(?:s)? (?:message )?received"
        r"(?:: | from )(?P<pci>{PCI})",
        key="severity pci",
        fields=aer,
        shape="report",
    ),
    _event(
        "aer",
        "DPC: containment event",
        r"(?P<driver>\S{1,40}) (?P<port>{PCI}): DPC: containment event, status:(?P<status>0x[0-9a-f]{1,4})"
        r"\b(?!: software)"
        r"(?: source:(?P<source>0x[0-9a-f]{1,4})|,? ERR_\w{1,10} received from (?P<sender>{PCI}))?",
        key="status port",
        fields=dpc,
        shape="report",
    ),
    # drivers/pci/pcie/err.c: after an error that was not corrected, the device's driver could not go on.
    _event(
        "aer",
        "device recovery failed|AER: can't recover",
        r"(?P<driver>\S{1,40}) (?P<pci>{PCI}): AER: (?:device recovery failed|can't recover)",
        key="pci",
        fields=lower_pci,
        shape="detail",
        severity="unrecovered",
    ),
    _event("lustre", "LustreError|Lustre: ", r"Lustre(?:Error)?: .*This client was evicted", kind="evicted"),
    _event("lustre", "LustreError|Lustre: ", r"Lustre(?:Error)?: .*Connection to .* was lost", kind="lost"),
    _event("lustre", "Lustre: ", r"Lustre: .*Connection restored to", kind="restored"),
    _event(
        "lustre", "LustreError", r"LustreError: .*(?:Unable to mount|15c-8: .* failed from MGS)", kind="mount_failed"
    ),
    *LUSTRE_TROUBLE,
    _event("lustre", "Lustre: ", r"Lustre: Mounted (?P<target>\S{1,64})", kind="mounted"),
    _event(
        "network_reset",
        "Keep alive watchdog timeout|above the threshold (|above threshold (|too long (threshold "
        "|NETDEV WATCHDOG: |unhealthy state, reset|admin queue is not in",
        (
            r"(?:(?:(?P<driver>ena) (?P<pci>{PCI})\S*(?: \S+)?|ena\d{1,3}): .*"
            r"(?:watchdog timeout|ompletions (?:is|are) above (?:the )?threshold|unhealthy state, reset is requested"
            r"|admin queue is not in running state|is paused for too long)"
            # net/sched/sch_generic.c: since Linux 6.9 driver and device stand before the words, not behind them.
            r"|(?:NETDEV WATCHDOG: |(?:\S{1,32} \S{1,40} )?(?=[^\s:]{1,32}: NETDEV WATCHDOG: CPU))"
            r"(?P<device>[^\s:]{1,32}))"
        ),
        key="driver pci device",
        kind="cause",
    ),
    _event(
        "network_reset",
        "Device reset completed",
        r"ena (?P<pci>{PCI})(?: \S{1,32})?: Device reset completed",
        key="pci",
        kind="done",
    ),
    # ena_dump_stats_to_dmesg: the count since the driver was loaded, printed at a reset.
    _event(
        "ena_expired",
        "wd_expired: ",
        r"ena (?P<pci>{PCI})(?: \S{1,32})?: wd_expired: (?P<number>[1-9]\d{0,17})",
        key="pci",
    ),
    _event(
        "network_failed",
        "Can not |Restore attempt failed|evice reset failed|Reset indication didn't|ersion is lower than"
        "|ersion is too low",
        r"ena (?P<pci>{PCI})(?: \S{1,32})?: "
        r"(?:.{0,40}Can not (?:reset (?:the )?device|initialize |reserve msix|setup management)"
        r"|Restore attempt failed|(?:ENA )?[Dd]evice reset failed|Reset indication didn't turn"
        r"|.{0,16} version is (?:lower than the minimal|too low))",
        key="pci",
    ),
    # efa_com.c: the driver closes the command queue, or never opens it. No resource can be made on the device
    # until it is reset. A command that the device refuses by its status is not among them.
    _event(
        "efa_admin",
        "admin cmd |(polling) timeout|dmin queue |FATAL error|Reset indication didn't|Device isn't ready",
        r"(?:infiniband (?!mlx)(?P<device>\S{1,32})|efa (?P<pci>{PCI})(?: \S{1,32})?): "
        r"(?:The device .{0,80} for admin cmd |Wait for completion \(polling\) timeout|.{0,40}FATAL error"
        r"|(?:EFA )?[Aa]dmin queue (?:state )?(?:is )?(?:closed|not (?:in )?running)"
        r"|Reset indication didn't turn|Device isn't ready)",
        key="device pci",
        kind="admin",
    ),
    _event(
        "efa_admin",
        "ersion is lower than|unavailable. Requested",
        r"(?:infiniband (?!mlx)(?P<device>\S{1,32})|efa (?P<pci>{PCI})(?: \S{1,32})?): "
        r"(?:EFA .{0,8}version is lower|.{0,12}BARs? unavailable)",
        key="device pci",
        kind="probe_failed",
    ),
    _not_started("efa_admin", "efa", "probe_failed"),
    _not_started("network_failed", "ena"),
    _not_started("mlx5", "mlx5_core", "dead"),
    _event(
        "efa_refused",
        " to process command | to submit command ",
        r"(?:infiniband (?!mlx)(?P<device>\S{1,32})|efa (?P<pci>{PCI})(?: \S{1,32})?): "
        r"Failed to (?:process|submit) command (?P<command>\w{1,32})",
        key="device pci command",
    ),
    *MLX5,
    # fs/ext4/page-io.c: what was written did not reach the disk.
    _event(
        "io_error",
        "I/O error",
        r"EXT4-fs warning \(device (?P<device>[\w-]{1,32})\): ext4_end_bio:\d{1,6}: I/O error",
        key="device",
    ),
    _event("beyond_end", "attempt to access beyond", r"(?:\S{1,24}: )?attempt to access beyond end of device"),
    _event("file_max", "file-max limit ", r"VFS: file-max limit (?P<limit>\d{1,20}) reached"),
    _event(
        "library_crash",
        " in libnccl| in libcuda| in libnvidia-| in libfabric",
        r"(?:traps: )?(?P<process>[^\[\]]{1,16}?)\[\d{1,9}\]:? (?:segfault at |general protection|trap ).{0,120}?"
        r" in (?P<library>lib[\w+-]{1,60})",
        key="process library",
    ),
    # include/asm-generic/bug.h, to Linux 6.18 and since: of the drivers that a training job stands on.
    _event(
        "kernel_warning",
        "WARNING: ",
        r"WARNING: (?:CPU: \d{1,5} PID: \d{1,9} at )?\S{0,160}"
        r"\b(?:efa|ena|mlx5|nvidia|lustre|lnet|ksocklnd|kefalnd)",
        hints="efa|ena|mlx5|nvidia|lustre|lnet|ksocklnd|kefalnd",
    ),
    # drivers/pci/hotplug/pciehp_ctrl.c; as a service of the port, in small letters, to Linux 4.18
    _event(
        "pcie_slot",
        "pciehp: Slot(|pciehp 0",
        r"pcie(?:port|hp) (?P<pci>{PCI})(?::pcie\w{1,4})?: (?:pciehp: )?[Ss]lot\((?P<slot>[\w-]{1,16})\): "
        r"(?P<kind>Link Down|Link Up|Card not present|Card present)",
        key="slot kind",
    ),
    _event("boots", "Linux version ", r"Linux version (?P<kernel>\S{1,100})"),
    _event("boots", "-- Boot ", r"-- Boot [0-9a-f]{32}\b"),
)

CORES: Tuple[bytes, ...] = (
    b"rror",
    b"ilure",
    b"timeout",
    b"dmin ",
    b"n't ",
    b" symbol ",
    b" reset",
    b"module ",
    b"hreshold",
    b"attempt ",
    b" command ",
    b" in lib",
    b"nvalid",
    b"ersion is ",
)
"""What many needles have in common: see kernel_scan."""

NEEDLES: Tuple[bytes, ...] = tuple(dict.fromkeys(needle for rule in RULES for needle in rule.needles))
BY_NEEDLE: Tuple[Tuple[EventPattern, ...], ...] = tuple(
    tuple(rule for rule in RULES if needle in rule.needles) for needle in NEEDLES
)
LISTS: List[str] = list(dict.fromkeys(rule.name for rule in RULES if rule.name and rule.name != "gpu_uuids"))
LISTS.append("unsplit")
