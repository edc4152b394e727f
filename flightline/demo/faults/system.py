"""Faults of the host: CPUs, memory, disks, kernel, clock, and of the instance at AWS."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Mapping, Tuple

from flightline_node.model import Remedy, Status

from .. import host, kernelfs
from ..hardware import Machine
from ..tree import Entry, paths_below, text
from .change import edited, logged, set_tool, together, without_line
from .fault import ACTIVE, FLEET, Apply, Change, DoesNotApply, Fault, applied


def _cpu_offline(files: Mapping[str, Entry], machine: Machine) -> Change:
    last = machine.vcpus - 1
    tree = json.loads(text(files, "out/cpuinfo.json"))
    cpus = next(entry for entry in tree["lscpu"] if entry["field"] == "CPU(s):")
    cpus["children"] = [
        {"field": "On-line CPU(s) list:", "data": f"0-{last - 1}"},
        {"field": "Off-line CPU(s) list:", "data": str(last)},
    ]
    return {"out/cpuinfo.json": (json.dumps(tree, indent=3) + "\n").encode()}


@applied
def _memory(files: Mapping[str, Entry], machine: Machine, percent: int) -> Change:
    memory_mib = (machine.expected.memory_mib or 0) * percent // 100
    smaller = replace(machine, expected=replace(machine.expected, memory_mib=memory_mib))
    return {"root/proc/meminfo": host.meminfo(smaller).encode()}


def _nvme_missing(files: Mapping[str, Entry], machine: Machine) -> Change:
    count = machine.expected.nvme_count or 0
    if not count:
        raise DoesNotApply(f"{machine.expected.instance_type} has no instance store")
    fewer = replace(machine, expected=replace(machine.expected, nvme_count=count - 1))
    pci = f"0000:{host.FIRST_NVME_BUS + count - 1:02x}:00.0"
    lspci = without_line(text(files, "out/lspci.txt"), pci)
    return {"out/lsblk.json": host.lsblk(fewer).encode(), "out/lspci.txt": lspci.encode()}


def _read_only(mount: str) -> Apply:
    return together(
        edited("root/proc/mounts", rf"(?<= {re.escape(mount)} )(\S+ )rw,", "xfs ro,"),
        logged(
            "XFS (nvme0n1p1): log I/O error -5",
            "XFS (nvme0n1p1): Filesystem has been shut down due to log error (0x2).",
        ),
    )


@applied
def _metadata(files: Mapping[str, Entry], machine: Machine, path: str, value: str) -> Change:
    document = json.loads(text(files, "root/run/flightline/imds.json"))
    document[path] = value
    return {"root/run/flightline/imds.json": json.dumps(document, indent=1).encode()}


def _one_numa_node(files: Mapping[str, Entry], machine: Machine) -> Change:
    if machine.numa_nodes < 2:
        raise DoesNotApply("it has one NUMA node")
    half = replace(machine, expected=replace(machine.expected, numa_nodes=1))
    return {"out/numactl.txt": host.numactl(half).encode()}


def _stuck(name: str, age_s: int) -> Apply:
    return lambda files, machine: {path: line.encode() for path, line in kernelfs.stuck(name, age_s).items()}


def _governor(files: Mapping[str, Entry], machine: Machine) -> Change:
    """The pstate driver is off, and the plain one keeps the CPUs slow."""
    new = {"scaling_driver": b"acpi-cpufreq\n", "scaling_governor": b"powersave\n"}
    below = paths_below(files, "root/sys/devices/system/cpu/cpufreq")
    if not below:
        raise DoesNotApply(f"{machine.expected.instance_type} leaves no frequency to the system")
    return {path: new[path.rpartition("/")[2]] for path in below}


_NO_JOURNAL = "No journal files were opened due to insufficient permissions."


_NO_RING = "dmesg: read kernel buffer failed: Operation not permitted"


FAULTS: Tuple[Fault, ...] = (
    Fault("cpu_slow", "the CPUs are kept at their lowest frequency: a warning, the node stays go",
          "cpu_governor", Remedy.FIX_CONFIG, _governor, status=Status.WARN, type="p4d.24xlarge"),
    Fault("host_memory_error", "a memory controller counted an uncorrected error",
          "edac", Remedy.REPLACE, edited("root/sys/devices/system/edac/mc/mc1/ue_count", "0", "1"), type="g4dn.metal"),
    Fault("process_stuck", "an nvidia-smi has been stuck in the driver for minutes",
          "stuck_processes", Remedy.REBOOT, _stuck("nvidia-smi", 600)),
    Fault("kernel_drift", "another kernel than the rest of the fleet",
          "uniform_kernel", Remedy.UPDATE_SOFTWARE,
          edited("root/proc/sys/kernel/osrelease", r"6\.12\.46-66\.121", "6.12.40-63.114"), scope=FLEET),
    Fault("disk_full", "the root file system is full",
          "disk_space", Remedy.FIX_CONFIG,
          edited("out/df.txt", r"52428800   157275116      26% /\n", "209493916      210000     100% /\n")),
    Fault("readonly_root", "the root file system turned read-only after an I/O error",
          "mounts", Remedy.REPLACE, _read_only("/"), also=("kernel_errors",)),
    Fault("nvme_missing", "one instance store disk is missing",
          "nvme", Remedy.REPLACE, _nvme_missing, also=("pci_devices",)),
    Fault("memory_missing", "half of the memory is missing",
          "memory", Remedy.REPLACE, _memory(50)),
    Fault("cpu_offline", "one CPU is offline",
          "cpu", Remedy.FIX_CONFIG, _cpu_offline),
    Fault("load_high", "processes are left running on the CPUs: a warning, the node stays go",
          "load", Remedy.INVESTIGATE,
          edited("root/proc/loadavg", r"^\S+ \S+ \S+", "691.20 688.90 640.10"), status=Status.WARN),
    Fault("clock_adrift", "the clock is seconds off",
          "clock_sync", Remedy.FIX_CONFIG,
          edited("out/chrony.txt", r"System time     : \S+", "System time     : 3.204118252")),
    Fault("clock_unsynchronised", "the clock follows no time source",
          "clock_sync", Remedy.FIX_CONFIG,
          together(edited("out/chrony.txt", r"Reference ID    : [^\n]*", "Reference ID    : 00000000 ()"),
               edited("out/chrony.txt", r"Stratum         : \d+", "Stratum         : 0"),
               edited("out/chrony.txt", r"Leap status     : \S+", "Leap status     : Not synchronised"))),
    Fault("memlock_low", "processes may lock 64 KiB of memory: EFA cannot register buffers",
          "memlock", Remedy.FIX_CONFIG,
          edited("root/proc/self/limits", r"(?<=Max locked memory)( +)unlimited( +)unlimited( +)",
                f"{'':9}{65536:<21}{65536:<21}")),
    Fault("node_busy", "a job's processes keep the CPUs busy: no active test starts",
          "dcgm_diag", Remedy.INVESTIGATE, edited("root/proc/loadavg", r"^\S+ \S+ \S+", "691.20 688.90 640.10"),
          status=Status.UNKNOWN, also=ACTIVE, level="standard"),
    Fault("numa_node_missing", "one NUMA node is missing",
          "numa_nodes", Remedy.FIX_CONFIG, _one_numa_node, also=("numa_affinity",)),
    Fault("swap_on", "swap is on: a warning, the node stays go",
          "swap", Remedy.FIX_CONFIG,
          together(edited("root/proc/meminfo", r"SwapTotal: +0 kB", "SwapTotal:       8388604 kB"),
               edited("root/proc/meminfo", r"SwapFree: +0 kB", "SwapFree:        8388604 kB")), status=Status.WARN),
    Fault("machine_check", "the CPU reports an uncorrected memory error",
          "kernel_errors", Remedy.REPLACE,
          logged("mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 7: bd80000000100134",
               "mce: [Hardware Error]: TSC 0 ADDR 1f3a5c8d40 MISC 86")),
    Fault("task_hung", "a kernel task hangs",
          "kernel_errors", Remedy.INVESTIGATE,
          logged("INFO: task kworker/u385:2:1187 blocked for more than 122 seconds.")),
    Fault("maintenance_due", "AWS will stop the instance within days",
          "maintenance", Remedy.REPLACE,
          _metadata("meta-data/events/maintenance/scheduled", json.dumps([{
              "NotBefore": "21 Nov 2026 18:00:00 GMT", "NotAfter": "21 Nov 2026 20:00:00 GMT",
              "Code": "instance-retirement", "Description": "The instance is running on degraded hardware",
              "EventId": "instance-event-0d59937288b749b32", "State": "active"}]))),
    Fault("spot_interrupted", "AWS takes the spot instance back",
          "maintenance", Remedy.REPLACE,
          _metadata("meta-data/spot/instance-action", json.dumps({
              "action": "terminate", "time": "2026-11-20T09:40:00Z"}))),
    Fault("wrong_instance_type", "the instance is of another type than the inventory says",
          "instance_identity", Remedy.FIX_CONFIG, _metadata("meta-data/instance-type", "p4d.24xlarge")),
    Fault("kernel_log_denied", "the kernel log may not be read",
          "xid", Remedy.INVESTIGATE,
          together(set_tool("journalctl", answers={}, rc=1, stderr=_NO_JOURNAL),
               set_tool("dmesg", answers={}, rc=1, stderr=_NO_RING)),
          status=Status.UNKNOWN, blinds=("kernel",)),
)  # fmt: skip
