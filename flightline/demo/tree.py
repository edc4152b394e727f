"""The files of a simulated node, as data: a path to bytes, to a tool or to a link.

`tools/` are the programs that probes run, `out/` what they print, `root/` the node's file system. `healthy`
is a link to the same of a healthy node of the type, for what a node's own `out/` does not have.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Callable, Dict, List, Mapping, Tuple, Union

from flightline_node.ask.probes import PROBES

from . import active, host, kernelfs, load, neuron, smi
from .hardware import EFA_DRIVER, Machine, machine

SIMULATED = "Simulated by Flightline's demo fleet"


@dataclass(frozen=True)
class Tool:
    """A simulated program. answers: arguments as one string -> file of out/ that it prints.

    otherwise: the file it prints for any other arguments. rc: its exit status. stderr: a line it prints on
    standard error. script: when given, the body of the program instead of all this.
    interpreter: what runs it.
    """

    answers: Mapping[str, str] = field(default_factory=dict)
    otherwise: str = ""
    rc: int = 0
    stderr: str = ""
    script: str = ""
    interpreter: str = "/bin/sh"

    def render(self, name: str) -> bytes:
        """Write the program. It finds its node from its own path, so that nodes can share one copy."""
        lines = [f"#!{self.interpreter}", f"# {SIMULATED}: prints a stored output and touches no hardware."]
        if self.script:
            return "\n".join([*lines, self.script, ""]).encode()
        lines.append("node=${0%/*/*}")
        if self.stderr:
            lines.append(f"printf '%s\\n' {shlex.quote(self.stderr)} >&2")
        lines.append('case "$*" in')
        patterns = [(shlex.quote(arguments), file) for arguments, file in self.answers.items()]
        for pattern, file in [*patterns, *([("*", self.otherwise)] if self.otherwise else [])]:
            lines.append(f"{pattern}) file=out/{file} ;;")
        lines += [
            f'*) echo "{name} (simulated): no stored output for: $*" >&2; exit {self.rc or 64} ;;',
            "esac",
            '[ -e "$node/$file" ] || file=healthy/$file',
            f'cat "$node/$file"; exit {self.rc}' if self.rc else 'exec cat "$node/$file"',
            "",
        ]
        return "\n".join(lines).encode()


@dataclass(frozen=True)
class Link:
    """A symbolic link, as in /sys."""

    target: str


Entry = Union[bytes, Tool, Link]
Files = Dict[str, Entry]

_OUTPUTS: Tuple[Tuple[str, Callable[[Machine], str]], ...] = (
    ("kernel.log", host.kernel_log),
    ("lspci.txt", host.lspci),
    ("numactl.txt", host.numactl),
    ("df.txt", host.df),
    ("df-inodes.txt", host.df_inodes),
    ("cpuinfo.json", host.lscpu),
    ("lsblk.json", host.lsblk),
    ("chrony.txt", host.chrony),
    ("sysctl.txt", host.sysctl),
    ("services.json", host.services),
    ("fi-info.txt", host.fi_info),
    ("ethtool.txt", kernelfs.ethtool),
    ("fio.json", active.fio),
    ("fi-pingpong.txt", lambda _: load.fi_pingpong()),
    ("fi-rdm-bw.txt", lambda _: load.fi_rdm_bw()),
)
_NVIDIA_OUTPUTS: Tuple[Tuple[str, Callable[[Machine], str]], ...] = (
    ("nvidia-smi.xml", smi.xml),
    ("nvidia-smi-topo.txt", smi.topo),
    ("nvlink-status.txt", smi.nvlink_status),
    ("nvlink-errors.txt", smi.nvlink_errors),
    ("nvidia-smi-list.txt", active.gpu_list),
    ("dcgm-diag.json", active.dcgm),
    ("dcgm-health.json", active.dcgm_health),
    ("conf-compute.txt", active.conf_compute),
    ("imex-own.txt", active.imex_own),
    ("imex-domain.json", active.imex_domain),
    ("nvbandwidth.json", load.nvbandwidth),
    *((f"nccl-{name}.log", partial(active.nccl, collective=name)) for name in active.COLLECTIVES),
)
_NEURON_OUTPUTS: Tuple[Tuple[str, Callable[[Machine], str]], ...] = (
    ("neuron-ls.json", neuron.neuron_ls),
    ("neuron-monitor.json", neuron.neuron_monitor),
    ("neuron-packages.txt", neuron.packages),
    ("nccom-test.txt", neuron.nccom_test),
)
_ROOT_FILES: Tuple[Tuple[str, Callable[[Machine], str]], ...] = (
    ("proc/meminfo", host.meminfo),
    ("proc/loadavg", host.loadavg),
    ("proc/uptime", host.uptime),
    ("proc/modules", host.modules),
    ("proc/mounts", host.mounts),
    ("proc/self/limits", host.limits),
    ("etc/os-release", host.os_release),
    ("run/flightline/imds.json", host.imds),
    ("run/flightline/fs-io.json", load.fs_io),
)


@lru_cache(maxsize=None)
def _healthy(instance_type: str) -> Tuple[Tuple[str, Entry], ...]:
    node = machine(instance_type)
    outputs = (*_OUTPUTS, *(_NEURON_OUTPUTS if node.neuron else _NVIDIA_OUTPUTS))
    files: Files = {f"out/{name}": make(node).encode() for name, make in outputs}
    files.update((f"root/{name}", make(node).encode()) for name, make in _ROOT_FILES)
    files["root/proc/sys/kernel/osrelease"] = f"{node.kernel}\n".encode()
    if not node.neuron:
        files["root/sys/module/nvidia/version"] = f"{node.driver}\n".encode()
        files["root/run/flightline/gpu-load.json"] = load.gpu_load(node).encode()
        files.update((f"root/{name}", b"") for name in host.nccl_files())
    files.update((path, content.encode()) for path, content in kernelfs.files(node).items())
    for name in kernelfs.interfaces(node):
        files[f"root/sys/class/net/{name}/device/driver"] = Link("../../../../bus/pci/drivers/ena")
    for index in range(node.expected.nvme_count or 0):
        files[f"root/sys/block/nvme{index + 1}n1/device/model"] = b"Amazon EC2 NVMe Instance Storage        \n"
    files.update(_tools(files))
    if node.efa_count:
        files.update(_efa(node))
    else:
        files["tools/fi_info"] = without_efa(files["tools/fi_info"])
    return tuple(files.items())


_SHARED = frozenset({"cat", "sh"})
"""Programs that probes use to reach a tool or a file: the real ones run."""

# Tools that a probe starts through a shell, where their arguments cannot be read off the probe.
_INDIRECT = {
    "fi_info": Tool({"-p efa -t FI_EP_RDM": "fi-info.txt"}),
    "nvidia-smi": Tool({"-L": "nvidia-smi-list.txt", "conf-compute -q": "conf-compute.txt"}),
    "dcgmi": Tool({"health -c -j": "dcgm-health.json"}),
    "nvidia-imex-ctl": Tool({"-q": "imex-own.txt", "-N -j": "imex-domain.json"}),
    "fio": Tool(otherwise="fio.json"),
    "nvbandwidth": Tool(otherwise="nvbandwidth.json"),
    "neuron-ls": Tool({"-j": "neuron-ls.json"}),
    "neuron-monitor": Tool(otherwise="neuron-monitor.json"),
    "nccom-test": Tool(otherwise="nccom-test.txt"),
    "fi_pingpong": Tool(otherwise="fi-pingpong.txt"),
    "fi_rdm_bw": Tool(otherwise="fi-rdm-bw.txt"),
    "ethtool": Tool({f"-S {kernelfs.PRIMARY}": "ethtool.txt"}),
    **{f"{name}_perf": Tool(otherwise=f"nccl-{name}.log") for name in active.COLLECTIVES},
}


def _tools(files: Mapping[str, Entry]) -> Files:
    """Make a tool for every command of every probe, from the probes themselves.

    One without a stored output is there too and fails: a simulated node must never run a real tool
    of the machine it lives on. Only the first of a probe's alternatives answers.
    """
    answers: Dict[str, Dict[str, str]] = {}
    for probe in PROBES:
        for position, (name, *arguments) in enumerate(probe.commands):
            known = answers.setdefault(name, {})
            if position == 0 and f"out/{probe.file}" in files:
                known[" ".join(arguments)] = probe.file
    tools = {name: Tool(known) for name, known in answers.items() if name not in _SHARED}
    for name, tool in _INDIRECT.items():
        # A node of another kind of accelerator has the program and no answer for it.
        stored = {arguments: file for arguments, file in tool.answers.items() if f"out/{file}" in files}
        otherwise = tool.otherwise if f"out/{tool.otherwise}" in files else ""
        told: Dict[str, str] = {**dict(tools.get(name, Tool()).answers), **stored}
        tools[name] = replace(tool, answers=told, otherwise=otherwise)
    return {f"tools/{name}": tool for name, tool in tools.items()}


def without_efa(tool: Entry) -> Tool:
    """fi_info where libfabric finds no EFA device: nothing listed, and the error as its exit status."""
    answers = tool.answers if isinstance(tool, Tool) else {}
    return Tool(answers, rc=61, stderr="fi_getinfo: -61 (No data available)")


def _efa(node: Machine) -> Files:
    files: Files = {
        "root/opt/amazon/efa_installed_packages": host.efa_packages(node).encode(),
        "root/sys/module/efa/version": f"{EFA_DRIVER}\n".encode(),
    }
    counters = host.efa_counters()
    for device in node.efa_devices():
        base = f"root/sys/class/infiniband/{device}"
        files[f"{base}/device/driver"] = Link("../../../../bus/pci/drivers/efa")
        files.update((f"{base}/ports/1/hw_counters/{name}", count.encode()) for name, count in counters.items())
        files.update((path, content.encode()) for path, content in kernelfs.ports(device).items())
    for index in range(2 if node.bridged else 0):
        files[f"root/sys/class/infiniband/mlx5_{index}/device/driver"] = Link("../../../../bus/pci/drivers/mlx5_core")
    return files


def healthy(instance_type: str) -> Files:
    """Every file of a healthy node of a type, a fresh mapping.

    Raises SettingsError for a type that cannot be simulated.
    """
    return dict(_healthy(instance_type))


def text(files: Mapping[str, Entry], path: str) -> str:
    """Decode a stored file. Raises KeyError when there is no such file."""
    entry = files[path]
    if not isinstance(entry, bytes):
        raise KeyError(path)
    return entry.decode()


def paths_below(files: Mapping[str, Entry], prefix: str) -> List[str]:
    """Paths in a folder of the node, for a fault that removes it."""
    return [path for path in files if path.startswith(prefix.rstrip("/") + "/")]
