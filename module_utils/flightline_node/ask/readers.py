"""Probes that read files instead of running a tool. Each takes the node's root, returns text."""

from __future__ import annotations

import glob
import json
import os
import re
from functools import partial
from typing import Callable, List, Mapping, Sequence

from .decided import expected
from .efa import efa_counters
from .files import contents
from .metadata import imds
from .nvme import nvme_smart
from .processes import processes
from .reach import s3
from .sysfs import sysfs

_EFA_INSTALLER = re.compile(r"EFA installer version:\s*(\S+)")
# The plugin's package was aws-ofi-nccl, then libnccl-ofi; rpm joins the version with "-", deb with "_".
_OFI_NCCL = re.compile(r"\b(?:aws-ofi-nccl|libnccl-ofi)[-_](\d+\.\d+\.\d+)")
_OS_NAME = re.compile(r'^PRETTY_NAME="?([^"\n]+)', re.MULTILINE)
_NCCL = re.compile(r"libnccl\.so\.(\d+\.\d+\.\d+)$")
_NCCL_GLOBS = (
    "usr/lib/*/libnccl.so.*",
    "usr/lib64/libnccl.so.*",
    "usr/local/lib/libnccl.so.*",
    "usr/local/cuda*/lib*/libnccl.so.*",
    "opt/nccl/build/lib/libnccl.so.*",
)


def _nccl_versions(root: str) -> List[str]:
    paths = [path for pattern in _NCCL_GLOBS for path in glob.glob(os.path.join(glob.escape(root), pattern))]
    return sorted({match.group(1) for match in map(_NCCL.search, paths) if match})


def versions(root: str) -> str:
    """What no other probe prints: kernel, distribution, EFA, NCCL and its plugin, and what configure decided."""
    installed = contents(os.path.join(root, "opt/amazon/efa_installed_packages")) or ""
    release = contents(os.path.join(root, "etc/os-release")) or ""
    installer, plugin = _EFA_INSTALLER.search(installed), _OFI_NCCL.search(installed)
    name = _OS_NAME.search(release)
    found = {
        "kernel": contents(os.path.join(root, "proc/sys/kernel/osrelease")),
        "os": name.group(1) if name else None,
        "lustre": contents(os.path.join(root, "sys/module/lustre/version")),
        "efa_installer": installer.group(1) if installer else None,
        "ofi_nccl": plugin.group(1) if plugin else None,
        "efa_driver": contents(os.path.join(root, "sys/module/efa/version")),
        "nvidia_module": contents(os.path.join(root, "sys/module/nvidia/version")),
        "nccl": _nccl_versions(root),
        "name": contents(os.path.join(root, "proc/sys/kernel/hostname")),
        "decided": expected(root),
    }
    return json.dumps({name: value for name, value in found.items() if value}, indent=1)


# The daemons that start jobs: a job's limits are theirs, not those of a login session.
_LAUNCHERS = frozenset({"slurmd", "containerd", "dockerd", "kubelet", "k3s", "pbs_mom"})


def limits(root: str) -> str:
    """The session's /proc/self/limits, then those of the job launchers and pam_limits' memlock lines.

    A session of Ansible, SSM or systemd often has a small memlock limit where every job has a
    large one: the session alone would condemn good nodes.
    """
    own = contents(os.path.join(root, "proc/self/limits"))
    if own is None:
        raise OSError("no proc/self/limits")
    parts = [own]
    for process in sorted(glob.glob(os.path.join(glob.escape(root), "proc/[1-9]*"))):
        name = contents(os.path.join(process, "comm"))
        text = contents(os.path.join(process, "limits")) if name in _LAUNCHERS else None
        if text:
            parts.append(f"# launcher {name} pid {os.path.basename(process)}\n{text}")
    security = os.path.join(glob.escape(root), "etc/security")
    for path in [os.path.join(root, "etc/security/limits.conf"), *sorted(glob.glob(security + "/limits.d/*.conf"))]:
        lines = [line for line in (contents(path) or "").splitlines() if "memlock" in line and line.lstrip()[:1] != "#"]
        if lines:
            parts.append("\n".join([f"# configured {path}", *lines]))
    return "\n".join(parts) + "\n"


def gpu_load(root: str) -> str:
    """Our own load program, its short run; imported where it runs, so that a quick run does not pay for it."""
    from .active import gpu_load as program

    return program.short(root)


def gpu_load_deep(root: str) -> str:
    """The load program until the GPUs are warm."""
    from .active import gpu_load as program

    return program.sustained(root)


def fs_io(root: str, named: Sequence[str] = ()) -> str:
    """Our own write-and-read test of the data file systems."""
    from .active import fs_io as program

    return program.short(root, named)


def fs_io_deep(root: str, named: Sequence[str] = ()) -> str:
    """The same with more than caches hold."""
    from .active import fs_io as program

    return program.long(root, named)


def neuron_sysfs(root: str) -> str:
    """The Neuron driver's files; imported where it runs, so that other nodes do not pay for it."""
    from . import neuron

    return neuron.neuron_sysfs(root)


def with_mounts(mounts: Sequence[str]) -> Mapping[str, Callable[[str], str]]:
    """The readers, the file-system test with mounts that the site names besides those it finds."""
    return {**READERS, "fs_io": partial(fs_io, named=mounts), "fs_io_deep": partial(fs_io_deep, named=mounts)}


READERS: Mapping[str, Callable[[str], str]] = {
    "efa_counters": efa_counters,
    "fs_io": fs_io,
    "fs_io_deep": fs_io_deep,
    "gpu_load": gpu_load,
    "gpu_load_deep": gpu_load_deep,
    "imds": imds,
    "limits": limits,
    "neuron_sysfs": neuron_sysfs,
    "nvme_smart": nvme_smart,
    "processes": processes,
    "s3": s3,
    "sysfs": sysfs,
    "versions": versions,
}
