"""Parsers: bytes of a bundle's files in, facts out. One file per tool.

To add one: write parsers/<tool>.py with `FILES` and `parse(files) -> Facts`, then run `python -m tools.registries`:
Ansible ships only modules it sees imported, so the list below is text.

A parser raises ParseError and nothing else, keeps to one pass over its input, and
never decides what is healthy.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Callable, Dict, Mapping, Tuple

from ...model import Facts
from ..bundle import Data

Files = Mapping[str, Data]
NEURON_WORDS = (b"euron", b"NEURON_HW_ERR")
"""Of which a kernel log that the parser neuron_log has anything to find in holds one."""


@dataclass(frozen=True)
class Parser:
    """A named parser: reads those of `files` that the bundle has (at least one)."""

    name: str
    files: Tuple[str, ...]
    parse: Callable[[Files], Facts]


def _later(name: str) -> Callable[[Files], Facts]:
    """What only active tests print, or only Neuron nodes, is read by modules that a quick run need not compile."""

    def parse(files: Files) -> Facts:
        kernel = files.get("kernel.log") if name == "neuron_log" and len(files) == 1 else None
        if kernel and not any(kernel.find(word) >= 0 for word in NEURON_WORDS):
            return {"files": sorted(files), "events": []}
        facts: Facts = import_module(f".{name}", __name__).parse(files)
        return facts

    return parse


# begin: made by python -m tools.registries
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
    nccl_files,
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


def _shipped() -> None:
    from . import (  # noqa: F401
        dcgm_diag,
        efa_loopback,
        fio,
        fs_io,
        gpu_load,
        nccl_debug,
        nccl_tests,
        nccom_test,
        neuron_log,
        neuron_ls,
        neuron_monitor,
        neuron_packages,
        neuron_sysfs,
        nvbandwidth,
    )


_ALL: Tuple[Parser, ...] = (
    Parser("chrony", ("chrony.txt",), chrony.parse),
    Parser("conf_compute", ("conf-compute.txt",), conf_compute.parse),
    Parser("cpuinfo", ("cpuinfo.json",), cpuinfo.parse),
    Parser("dcgm_diag", ("dcgm-diag.json", "dcgm-diag.txt"), _later("dcgm_diag")),
    Parser("dcgm_health", ("dcgm-health.json", "dcgm-health.txt"), dcgm_health.parse),
    Parser("df", ("df.txt", "df-inodes.txt"), df.parse),
    Parser("efa_counters", ("efa-counters.json",), efa_counters.parse),
    Parser("efa_loopback", ("efa-loopback.txt",), _later("efa_loopback")),
    Parser("ethtool", ("ethtool.txt",), ethtool.parse),
    Parser("fabric_log", ("fabric-log.txt", "fabricmanager.log", "nvlsm.log"), fabric_log.parse),
    Parser("fi_info", ("fi-info.txt",), fi_info.parse),
    Parser("fio", ("fio.json",), _later("fio")),
    Parser("fs_io", ("fs-io.json",), _later("fs_io")),
    Parser("gpu_load", ("gpu-load.json",), _later("gpu_load")),
    Parser("imds", ("imds.json",), imds.parse),
    Parser("imex", ("imex.json", "imex.txt"), imex.parse),
    Parser("kernel", ("kernel.log",), kernel.parse),
    Parser("limits", ("limits.txt",), limits.parse),
    Parser("lnetctl", ("lnetctl.txt",), lnetctl.parse),
    Parser("loadavg", ("loadavg.txt",), loadavg.parse),
    Parser("lsblk", ("lsblk.json",), lsblk.parse),
    Parser("lspci", ("lspci.txt",), lspci.parse),
    Parser("meminfo", ("meminfo.txt",), meminfo.parse),
    Parser("modules", ("modules.txt",), modules.parse),
    Parser("mounts", ("mounts.txt",), mounts.parse),
    Parser("nccl_debug", (nccl_files.JOB_LOG, *nccl_files.FILES), _later("nccl_debug")),
    Parser("nccl_tests", nccl_files.FILES, _later("nccl_tests")),
    Parser("nccom_test", ("nccom-test.txt",), _later("nccom_test")),
    Parser("neuron_log", ("kernel.log", "neuron-runtime.log"), _later("neuron_log")),
    Parser("neuron_ls", ("neuron-ls.json", "neuron-ls.txt"), _later("neuron_ls")),
    Parser("neuron_monitor", ("neuron-monitor.json",), _later("neuron_monitor")),
    Parser("neuron_packages", ("neuron-packages.txt",), _later("neuron_packages")),
    Parser("neuron_sysfs", ("neuron-sysfs.json",), _later("neuron_sysfs")),
    Parser("numactl", ("numactl.txt",), numactl.parse),
    Parser("nvbandwidth", ("nvbandwidth.json", "nvbandwidth.txt"), _later("nvbandwidth")),
    Parser("nvidia_smi", ("nvidia-smi.xml", "nvidia-smi.txt"), nvidia_smi.parse),
    Parser("nvidia_smi_topo", ("nvidia-smi-topo.txt",), nvidia_smi_topo.parse),
    Parser("nvlink", ("nvlink-status.txt", "nvlink-errors.txt"), nvlink.parse),
    Parser("nvme_smart", ("nvme-smart.json",), nvme_smart.parse),
    Parser("processes", ("processes.json",), processes.parse),
    Parser("s3", ("s3.json",), s3.parse),
    Parser("services", ("services.json",), services.parse),
    Parser("sysctl", ("sysctl.txt",), sysctl.parse),
    Parser("sysfs", ("sysfs.json",), sysfs.parse),
    Parser("uptime", ("uptime.txt",), uptime.parse),
    Parser("versions", ("versions.json",), versions.parse),
)
# end: made by python -m tools.registries

PARSERS: Dict[str, Parser] = {parser.name: parser for parser in _ALL}
