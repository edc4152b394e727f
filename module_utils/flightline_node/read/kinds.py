"""What a file is by its content: one line per kind of output that a bundle has a name for.

Only for files whose name says nothing; what has its name is left to its parser. A test holds the table to the parsers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional, Tuple

from .bundle import MANIFEST, SCHEMA

JOURNAL = b"LPKSHHRH"
"""How a file of systemd's journal begins: binary, and full of kernel messages."""
LOOK_BYTES = 8 << 10
"""Of a file's beginning and of its end."""


@dataclass(frozen=True)
class FileKind:
    """file: the name that a bundle has for it; what: in words; marks: what only such output holds.

    do: how to make the wanted file of it, where its name is not all that is wrong.
    """

    file: str
    what: str
    marks: str
    do: str = ""


_KERNEL = "|".join(
    (
        r"\bNVRM: ",
        r"\b(?:Xid|SXid) \(",
        r"\d\d:\d\d:\d\d\S*(?: \S+){0,2} (?:kernel|klogd|kmsg)(?:\[\d+\])?: ",
        r"^(?:<\d>)?\[ *\d{1,9}\.\d{3,9}\](?! *\([A-Z*=!+?-]{2}\))",  # not the X server's: "[ 1.234] (II)"
        r"^\[\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\] ",
        r"\bLinux version \d",
        r'"dmesg": \[',
        r"^-- (?:Boot|Logs begin|Journal begins)",
    )
)

KINDS: Tuple[FileKind, ...] = (
    FileKind(MANIFEST, "a bundle's manifest", rf'"schema": *"{SCHEMA}"'),
    FileKind("nvidia-smi.xml", "nvidia-smi -q -x", r"<nvidia_smi_log>"),
    FileKind("nvidia-smi.txt", "nvidia-smi -q", r"={6,}NVSMI LOG={6,}|^\| NVIDIA-SMI \d|^Failed to initialize NVML"),
    FileKind("nvidia-smi.txt", "nvidia-smi", r"^NVIDIA-SMI has failed|^Unable to determine the device handle"),
    FileKind("nvidia-smi-topo.txt", "nvidia-smi topo -m", r"^\s*(?:\x1b\[\dm)?\s*GPU0\s+(?:GPU1\s|\S+\s.*Affinity)"),
    FileKind("nvlink-errors.txt", "nvidia-smi nvlink -e", r"^\s*Link \d+[:,] \S.{0,40}(?:[Ee]rror|Count|Recover)"),
    FileKind(
        "nvlink-status.txt", "nvidia-smi nvlink -s", r"^\s*Link \d+: (?:[\d.]+ GB/s|<?inactive)|NVLink information"
    ),
    FileKind("conf-compute.txt", "nvidia-smi conf-compute -q", r"NVSMI CONF-COMPUTE LOG|^ *CC (?:State|status)"),
    FileKind("dcgm-diag.json", "dcgmi diag -j", r'"DCGM (?:GPU )?Diagnostic"|"test_categories"'),
    FileKind("dcgm-diag.txt", "dcgmi diag", r"^\| Diagnostic +\| Result"),
    FileKind("dcgm-health.json", "dcgmi health", r'"Overall Health"'),
    FileKind("dcgm-health.txt", "dcgmi health", r"^\| Overall Health"),
    FileKind("imex.json", "nvidia-imex-ctl", r"^Domain State:|nvidia-imex-ctl"),
    FileKind("imex.json", "nvidia-imex-ctl", r'(?s)"connections".*"nodes"|"nodes".*"connections"'),
    FileKind("nvbandwidth.json", "nvbandwidth -j", r'"nvbandwidth"'),
    FileKind("nvbandwidth.txt", "nvbandwidth", r"^nvbandwidth Version"),
    FileKind("gpu-load.json", "the GPU load test", r'"precision": "fp|"first_mismatch"'),
    FileKind("fabric-log.txt", "the Fabric Manager's log", r"Fabric Manager version|^# (?:fabricmanager|nvlsm)\.log"),
    FileKind("nccl-debug.log", "a report of NCCL's RAS", r"^Communicators\.\.\. \(|^RAS Monitor Mode|\bPEER_DEAD: "),
    FileKind("nccl-<collective>.log", "nccl-tests", r"^# nThread \d|out-of-place +in-place|# Avg bus bandwidth"),
    FileKind("nccl-debug.log", "NCCL", r"\bNCCL (?:INFO|WARN|version) "),
    FileKind("nccom-test.txt", "nccom-test", r"\bnccom-test\b|algbw\(GB/s\)"),
    FileKind("neuron-runtime.log", "the Neuron runtime", r"\b(?:TDRV|NRT|NMGR|ENC|KMGR|NLA):\w"),
    FileKind("neuron-ls.json", "neuron-ls -j", r'"neuron_device": *\d'),
    FileKind("neuron-ls.txt", "neuron-ls", r"^\| NEURON +\|"),
    FileKind("neuron-monitor.json", "neuron-monitor", r'"neuron_(?:runtime_data|hw_counters|hardware_info)"'),
    FileKind("neuron-sysfs.json", "Neuron's sysfs", r'"core_count": .*\s+"connected_devices"|"sram_ecc_uncorrected"'),
    FileKind("neuron-packages.txt", "the list of Neuron's packages", r"^aws-neuronx-\S+ \d"),
    FileKind("fi-info.txt", "fi_info", r"^provider: \w|\bfi_getinfo: -\d|^fi_info:$"),
    FileKind("efa-counters.json", "EFA's counters", r'"rdma_(?:read|write)_wr_err"'),
    FileKind("efa-loopback.txt", "fi_pingpong", r"^bytes +#sent +#ack|^bytes +iters +total"),
    FileKind("ethtool.txt", "ethtool -S", r"^NIC statistics:"),
    FileKind("lnetctl.txt", "lnetctl net show", r"^ *- net type: \w|^nid +(?:status|refs)"),
    FileKind("fs-io.json", "the file system test", r'"write_mb_s"'),
    FileKind("fio.json", "fio", r'"fio version"'),
    FileKind("sysfs.json", "what sysfs says", r'"efa_ports"'),
    FileKind("processes.json", "the list of processes", r'"stuck_count"|"init_seen"'),
    FileKind("nvme-smart.json", "nvme smart-log", r'"critical_warning"|"smartctl"|"nvme_smart_health_information_log"'),
    FileKind("s3.json", "the answers of S3", r'"endpoints": *\['),
    FileKind("lsblk.json", "lsblk -J", r'"blockdevices"'),
    FileKind("cpuinfo.json", "lscpu -J", r'"lscpu"'),
    FileKind("cpuinfo.json", "lscpu", r"^CPU op-mode\(s\):|^model name\s+:"),
    FileKind("services.json", "systemctl list-units", r'"unit": *"[^"]+\.service"|^\W*[\w@.-]+\.service +loaded'),
    FileKind("imds.json", "the instance's metadata", r'"(?:instanceType|(?:meta-data/)?instance-type)"'),
    FileKind("versions.json", "versions of the software", r'"efa_(?:installer|driver)"'),
    FileKind("lspci.txt", "lspci", r"^(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] (?:\"?[A-Z]|[0-9a-f]{4}: )"),
    FileKind("numactl.txt", "numactl --hardware", r"^available: \d+ nodes?|^node \d+ cpus:"),
    FileKind("df-inodes.txt", "df -i", r"^Filesystem .*\bIFree\b"),
    FileKind("df.txt", "df", r"^Filesystem .*(?:Avail|Use%|Capacity)"),
    FileKind("meminfo.txt", "/proc/meminfo", r"^MemTotal: +\d"),
    FileKind("loadavg.txt", "/proc/loadavg", r"\A\d+\.\d\d \d+\.\d\d \d+\.\d\d \d+/\d+ \d+\s*\Z"),
    FileKind("uptime.txt", "/proc/uptime", r"\A\d+\.\d\d \d+\.\d\d\s*\Z"),
    FileKind("chrony.txt", "chronyc tracking", r"^Reference ID +:|^[0-9A-F]{8},[\w.:]*,\d+,"),
    FileKind(
        "chrony.txt",
        "timedatectl",
        r"^ *(?:Server|Local time|System clock synchronized): |^(?:NTPSynchronized|CanNTP)=",
    ),
    FileKind("sysctl.txt", "sysctl -a", r"^(?:kernel|vm|net|fs)\.[\w.-]+ ?= ?"),
    FileKind(
        "modules.txt",
        "the list of kernel modules",
        r"^\w+ \d+ \d+ \S+ (?:Live|Loading|Unloading) |^Module +Size +Used by",
    ),
    FileKind(
        "mounts.txt",
        "the list of mounts",
        r"^\S+ /\S* \S+ (?:rw|ro)\b\S* \d \d$|^\S+ on / type |^TARGET +SOURCE|\"fstype\"",
    ),
    FileKind("limits.txt", "limits", r"^Max open files |^open files +\(-n\)|^open files +\(.*-n\)|^max locked memory"),
    FileKind(
        "kernel.log",
        "a systemd journal",
        rf"\A{JOURNAL.decode()}",
        "journalctl --file {file} -k -b -o short-iso > kernel.log",
    ),
    FileKind("kernel.log", "a kernel log", r'^__REALTIME_TIMESTAMP=|"_TRANSPORT" ?: ?"kernel"'),
    FileKind("kernel.log", "a kernel log", _KERNEL),
    FileKind(
        "nccl-debug.log",
        "a job's log",
        r"^Traceback \(most recent call last\):|^\[(?:default|rank)\d+\]:"
        r"|\btorch[./]distributed\b|\btorch\.\w+Error: |\bChildFailedError\b|\bCUDA error: ",
    ),
    FileKind("fabric-log.txt", "the Fabric Manager's log", r"\bnv-fabricmanager\[\d|\bnvidia-fabricmanager\.service: "),
)
_ALL = tuple((kind, re.compile(kind.marks.encode(), re.MULTILINE)) for kind in KINDS)
_ARCHIVES = ((0, b"PK\x03\x04"), (257, b"ustar"), (0, b"7z\xbc\xaf\x27\x1c"), (0, b"Rar!"), (0, b"\x04\x22\x4d\x18"))
_BYTE_ORDER = (b"\xff\xfe", b"\xfe\xff")


def kind_of(content: bytes) -> Optional[FileKind]:
    """The kind of output whose marks stand in the content, the most telling first; None for any other."""
    if content[:2] in _BYTE_ORDER:
        content = content.decode("utf-16", "replace").encode()
    return next((kind for kind, marks in _ALL if marks.search(content)), None)


def is_archive(content: bytes) -> bool:
    """Does it hold other files: a tar, a zip and their like?"""
    return any(content[at : at + len(magic)] == magic for at, magic in _ARCHIVES)


def is_binary(content: bytes) -> bool:
    """Is it no text, nor systemd's journal? A log cut while it was written has zeros before its lines."""
    text = content.strip(b"\0")
    return not text or (b"\0" in text and not text.startswith((JOURNAL, *_BYTE_ORDER)))
