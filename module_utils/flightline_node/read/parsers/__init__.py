"""Parsers: bytes of a bundle's files in, facts out. One file per tool.

To add one: write parsers/<tool>.py with `parse(files) -> Facts`, and name it here. The
import must be static (`from . import x`): Ansible ships only modules it sees imported.

A parser raises ParseError and nothing else, keeps to one pass over its input, and
never decides what is healthy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Dict, Mapping, Tuple

from ...model import Facts
from ..bundle import Data
from . import (
    chrony,
    conf_compute,
    cpuinfo,
    dcgm_health,
    df,
    efa_counters,
    ethtool,
    fabric_log,
    fi_info,
    imds,
    imex,
    kernel,
    limits,
    lnetctl,
    loadavg,
    lsblk,
    lspci,
    meminfo,
    modules,
    mounts,
    numactl,
    nvidia_smi,
    nvidia_smi_topo,
    nvlink,
    nvme_smart,
    processes,
    s3,
    services,
    sysctl,
    sysfs,
    uptime,
    versions,
)
from .nccl_files import FILES as NCCL_LOGS
from .nccl_files import JOB_LOG

Files = Mapping[str, Data]
NEURON_WORDS = (b"euron", b"NEURON_HW_ERR")
"""Of which a kernel log that the parser neuron_log has anything to find in holds one."""


@dataclass(frozen=True)
class Parser:
    """A named parser: reads those of `files` that the bundle has (at least one)."""

    name: str
    files: Tuple[str, ...]
    parse: Callable[[Files], Facts]


def _dcgm_diag(files: Files) -> Facts:
    # Here and below: what only active tests print is read by modules that a quick run need not compile.
    from . import dcgm_diag

    return dcgm_diag.parse(files)


def _efa_loopback(files: Files) -> Facts:
    from . import efa_loopback

    return efa_loopback.parse(files)


def _fio(files: Files) -> Facts:
    from . import fio

    return fio.parse(files)


def _fs_io(files: Files) -> Facts:
    from . import fs_io

    return fs_io.parse(files)


def _gpu_load(files: Files) -> Facts:
    from . import gpu_load

    return gpu_load.parse(files)


def _nccl_debug(files: Files) -> Facts:
    from . import nccl_debug

    return nccl_debug.parse(files)


def _nccl_tests(files: Files) -> Facts:
    from . import nccl_tests

    return nccl_tests.parse(files)


def _nccom_test(files: Files) -> Facts:
    from . import nccom_test

    return nccom_test.parse(files)


def _neuron_log(files: Files) -> Facts:
    # Here and below: only nodes with Neuron devices have these files, and only their logs have such lines.
    kernel = files.get("kernel.log") if len(files) == 1 else None
    if kernel and not any(kernel.find(word) >= 0 for word in NEURON_WORDS):
        return {"files": sorted(files), "events": []}
    from . import neuron_log

    return neuron_log.parse(files)


def _neuron_ls(files: Files) -> Facts:
    from . import neuron_ls

    return neuron_ls.parse(files)


def _neuron_monitor(files: Files) -> Facts:
    from . import neuron_monitor

    return neuron_monitor.parse(files)


def _neuron_packages(files: Files) -> Facts:
    from . import neuron_packages

    return neuron_packages.parse(files)


def _neuron_sysfs(files: Files) -> Facts:
    from . import neuron_sysfs

    return neuron_sysfs.parse(files)


def _nvbandwidth(files: Files) -> Facts:
    from . import nvbandwidth

    return nvbandwidth.parse(files)


_ALL: Tuple[Parser, ...] = (
    Parser("nvidia_smi", ("nvidia-smi.xml", "nvidia-smi.txt"), nvidia_smi.parse),
    Parser("nvidia_smi_topo", ("nvidia-smi-topo.txt",), nvidia_smi_topo.parse),
    Parser("conf_compute", ("conf-compute.txt",), conf_compute.parse),
    Parser("dcgm_health", ("dcgm-health.json", "dcgm-health.txt"), dcgm_health.parse),
    Parser("imex", ("imex.json", "imex.txt"), imex.parse),
    Parser("fabric_log", ("fabric-log.txt", "fabricmanager.log", "nvlsm.log"), fabric_log.parse),
    Parser("nvlink", ("nvlink-status.txt", "nvlink-errors.txt"), nvlink.parse),
    Parser("kernel", ("kernel.log",), kernel.parse),
    Parser("df", ("df.txt", "df-inodes.txt"), df.parse),
    Parser("loadavg", ("loadavg.txt",), loadavg.parse),
    Parser("meminfo", ("meminfo.txt",), meminfo.parse),
    Parser("lspci", ("lspci.txt",), lspci.parse),
    Parser("numactl", ("numactl.txt",), numactl.parse),
    Parser("cpuinfo", ("cpuinfo.json",), cpuinfo.parse),
    Parser("uptime", ("uptime.txt",), uptime.parse),
    Parser("lsblk", ("lsblk.json",), lsblk.parse),
    Parser("nvme_smart", ("nvme-smart.json",), nvme_smart.parse),
    Parser("lnetctl", ("lnetctl.txt",), lnetctl.parse),
    Parser("s3", ("s3.json",), s3.parse),
    Parser("fio", ("fio.json",), _fio),
    Parser("chrony", ("chrony.txt",), chrony.parse),
    Parser("sysctl", ("sysctl.txt",), sysctl.parse),
    Parser("modules", ("modules.txt",), modules.parse),
    Parser("mounts", ("mounts.txt",), mounts.parse),
    Parser("limits", ("limits.txt",), limits.parse),
    Parser("services", ("services.json",), services.parse),
    Parser("imds", ("imds.json",), imds.parse),
    Parser("versions", ("versions.json",), versions.parse),
    Parser("dcgm_diag", ("dcgm-diag.json", "dcgm-diag.txt"), _dcgm_diag),
    Parser("nccl_tests", NCCL_LOGS, _nccl_tests),
    Parser("nccl_debug", (JOB_LOG, *NCCL_LOGS), _nccl_debug),
    Parser("nvbandwidth", ("nvbandwidth.json", "nvbandwidth.txt"), _nvbandwidth),
    Parser("gpu_load", ("gpu-load.json",), _gpu_load),
    Parser("efa_loopback", ("efa-loopback.txt",), _efa_loopback),
    Parser("fs_io", ("fs-io.json",), _fs_io),
    Parser("fi_info", ("fi-info.txt",), fi_info.parse),
    Parser("efa_counters", ("efa-counters.json",), efa_counters.parse),
    Parser("ethtool", ("ethtool.txt",), ethtool.parse),
    Parser("sysfs", ("sysfs.json",), sysfs.parse),
    Parser("processes", ("processes.json",), processes.parse),
    Parser("neuron_ls", ("neuron-ls.json", "neuron-ls.txt"), _neuron_ls),
    Parser("neuron_monitor", ("neuron-monitor.json",), _neuron_monitor),
    Parser("neuron_sysfs", ("neuron-sysfs.json",), _neuron_sysfs),
    Parser("neuron_packages", ("neuron-packages.txt",), _neuron_packages),
    Parser("neuron_log", ("kernel.log", "neuron-runtime.log"), _neuron_log),
    Parser("nccom_test", ("nccom-test.txt",), _nccom_test),
)

PARSERS: Dict[str, Parser] = {parser.name: parser for parser in _ALL}
