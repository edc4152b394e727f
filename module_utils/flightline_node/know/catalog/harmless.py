"""Kernel lines in an error's shape that healthy machines print: no part of them is one that a training job needs.

A line each: what prints it, then the pattern, from the beginning of the message. Taken from the print statements of Linux
5.4 to 6.14 and of the drivers named; a line that also comes of a fault does not belong here.
"""

from __future__ import annotations

import re
from functools import lru_cache

PARTS = (
    # Parts of a PC that a cloud instance has in name only, or that only a person at the machine uses.
    "ACPI", "acpi", "usb", "hub", "hid[-_ ]\\w*", "input", "i8042", "psmouse", "serio", "serial", "parport", "pcspkr", "pnp",
    "floppy", "Bluetooth", "snd_\\w+", "yenta\\w*", "cfg80211", "platform regulatory", "i2c", "piix4_smbus", "ipmi", "power_meter", "rtc",
    "vga", "fbcon", "fb\\d", "hpet", "gpio", "sr\\d", "fd\\d", "loop\\d", "Error: Driver 'pcspkr'", "simple-framebuffer",
    "xhci_hcd", "mei(?:_\\w+)?", "ath", "dmi", "DMI", "PM-Timer", "init", "evdi", "thermal", "(?:Phoenix|Award|AMI) BIOS", "BIOS", "apei\\d", "EXT[23]-fs", "sensors?", "iwlwifi", "wl\\w+", "ieee80211", "ath\\d+k", "hp_wmi", "\\w+[-_](?:wdt|gwdt)", "drm:",
    # Measured boot, keys and security modules, with what they forbid to other programs.
    "tpm", "ima", "evm", "integrity", "blacklist", "Problem (?:loading|blacklisting)", "audit", "kauditd", "SELinux",
    "AppArmor", "Lockdown: (?!.*module)", "kexec", "Loading compiled",
    # Mitigations and counters of the CPU; clocks that the hypervisor replaces.
    "Spectre", "RETBleed", "MDS", "TAA", "MMIO Stale", "SRBDS", "GDS", "RFDS", "SRSO", "Speculative", "L1TF", "ITS", "x86/",
    "tsc", "TSC", "APIC", "clocksource: Watchdog remote", "perf:", "NMI watchdog: (?:Perf|Shutting down)", "unchecked MSR", "kvm", "mtrr", "core:",
    "(?:DMAR: )?\\[Firmware (?:Bug|Warn|Info)\\]", "(?:check: )?Scanning (?:for|\\d+ areas)", "#PF:", "resource: resource sanity", "NOHZ tick-stop", "pmd_set_huge", "memblock_reserve",
    # File systems of the image and of the boot.
    "GPT:", "FAT-fs", "squashfs", "SQUASHFS", "overlay", "ISO 9660", "Initramfs", "xfs filesystem being", "dracut", "zram",
    # Marks of the kernel's own build, and of programs.
    "Unknown kernel command line", "(?:Kernel c|C)ommand line:", "Warning: (?:Intel|AMD|Deprecated|Unmaintained|iptables)", "warning: `", "kernel: The list", "TECH PREVIEW",
    "process '", "pstore", "PM: ", "device-mapper: core", "Code: ", "blkfront", "kmem\\.limit", "net_ratelimit",
    "Modules linked in", "crash memory driver", "Module \\w+ failed to register", "virbr\\d", "NFSD: ", "systemd", "bpfilter", "EDAC igen6: no ECC",
)  # fmt: skip
"""Whoever speaks so is none of the parts that training stands on, whatever it says."""

LINES = (
    # kernel/module: an out-of-tree module that is not signed; every node with NVIDIA's or Lustre's has it.
    r"\w+: module verification failed: signature and/or required key missing",
    # drivers/firmware, drivers/ras, drivers/pci: what is switched on to report errors.
    r"RAS: Correctable Errors collector|ERST: |ERST DBG|EINJ: |HEST: |GHES: APEI firmware first|pcieport \S+: (?:AER|DPC): (?:error|enabled)",
    r"ib_core: loading without fault|crash(?:kernel)? (?:hp|reserved)",
    # arch/x86: a program that crashed or was stopped; its own log says why.
    r"(?:traps: )?[^\[\]]{1,16}\[\d+\]:? (?:segfault at|trap|general protection)|x86/split lock|show_signal",
    r"oom[-_]|Memory cgroup (?:stats|out of)|(?:.{1,16} invoked oom-killer: )?gfp_mask=|(?:memory|swap|memory\+swap|kmem): usage \d|Tasks state|TCP: (?:request_sock|eth|out of memory)|neighbour: ",
    # drivers/pci: bus numbers that the kernel gives anew; an option ROM or an I/O window, which no GPU and no network device uses.
    r"pci\S+: ACPI |pci \S+: (?:Activating ISA|can't derive routing|(?:VF )?BAR (?:[7-9]|1\d):? |VF BAR )|pci \S+: bridge configuration invalid|pci(?:eport|_bus)? \S+: (?:can't claim )?BAR 6\b|pci(?:eport)? \S+: (?:bridge window|BAR \d+:?) \[io |pci(?:eport)? \S+: .{0,40}\[io ",
    r"pci \S+: can't claim BAR \d+ \[io|\S+ \S+: invalid VPD tag|PCI: System does not support PCI|PCI: Using host bridge",
    # drivers/nvme/host: names that an emulated controller leaves out.
    r"nvme nvme\d+: (?:missing or invalid SUBNQN|Ignoring bogus|globally duplicate|using unchecked|Shutdown timeout)",
    r"(?:blk_update_request: )?(?:I/O|critical target) error, dev \S+, sector \d+ op 0x[359]:",
    # fs/ext4, fs/xfs: the journal of a file system that was not unmounted.
    r"EXT4-fs \(\S+\): (?:INFO: recovery|warning: (?:maximal mount|checktime)|orphan|recovery|write access|\d+ orphan|.{0,40}errors=)",
    r"XFS \(\S+\): (?:Starting recovery|Ending recovery)",
    # drivers/net: ENA falls back by itself, mlx5's link comes up after its start.
    r"ena \S+(?: \S+)?: (?:LLQ is not supported|.{0,30}Fallback to host mode|PHC is not supported)",
    r"nf_conntrack: default automatic helper|NFS: state manager: |nfs4: Deprecated|FS-Cache: Duplicate|new mount options do not match|IPv4: martian",
    # mlx5's firmware keeps some registers of a function to itself, and whoever reads a port's counters asks for them.
    r"mlx5_core \S+: (?:mlx5_cmd_out_err:\d+:\(pid \d+\): )?ACCESS_REG\(0x805\) op_mod\(0x\d\) failed(?:$|, status bad (?!system)\w+)",
    # The NVIDIA driver on a machine without a screen, and calls of tools that a product does not have (NV_ERR_NOT_SUPPORTED).
    r"(?:nvidia \S+: )?\[drm[:\]].*|nvidia-modeset: WARNING: GPU:\d+: |nvidia \S+: \[drm\]",
    r"NVRM: (?:GPU\d+ )?.*(?:NV_ERR_NOT_SUPPORTED|status=0x00000056|NV_ERR_OBJECT_NOT_FOUND|status=0x00000057)",
    r"NVRM: .*left-over mappings",
    # drivers/gpu/drm/drm_panic.c: a screen that could show a panic, should there be one.
    r"[\w-]+ \S+: (?:\[drm\] Registered \d+ planes? with drm panic|registered panic notifier)",
    # What the board's firmware tells of a chipset, of screens and of a laptop's switches: no server's GPU asks for it.
    r"NVRM:? .*(?:[Cc]hipset|ACPI|_DSM|_DOD|Optimus|HDMI|DisplayPort|EDID|[Bb]acklight|Mosaic|SLI)\b",
    # drivers/pci/pcie/aer.c: how a corrected error was seen. The line above it counts.
    r"\S+ \S+:(?: AER:)? +(?:device \[[0-9a-f]{4}:[0-9a-f]{4}\] error status/mask=0000[0-9a-f][01][048c][01]/|\[ ?\d+\] (?:RxErr|BadTLP|BadDLLP|Rollover|Timeout|NonFatalErr|CorrIntErr|HeaderOF))",
    r"\S+ \S+:(?: AER:)? aer_(?:layer|agent)=|\S+ \S+: AER: aer_status: 0x0000[0-9a-f][01][048c][01], aer_mask|\S+ \S+: AER:? +(?:\[ ?\d+\] )?(?:RxErr|BadTLP|BadDLLP|Rollover|Timeout|NonFatalErr)",
)
"""Lines of parts that matter, which mean nothing."""


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    return re.compile(f"(?:(?:{'|'.join(PARTS)})(?![a-z])|{'|'.join(LINES)})")


def is_harmless(message: str) -> bool:
    """Does a healthy machine say so?"""
    return _pattern().match(message) is not None
