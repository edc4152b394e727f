"""Faults of EFA, ENA and the network file system."""

from __future__ import annotations

from typing import Dict, Mapping, Optional, Tuple

from flightline_node.model import Remedy, Status

from .. import kernelfs
from ..hardware import Machine
from ..tree import Entry, paths_below, text, without_efa
from .change import edited, logged, together, without_line
from .fault import Change, DoesNotApply, Fault, applied


def _efa_missing(files: Mapping[str, Entry], machine: Machine) -> Change:
    """Detach the last EFA device: no PCI device, no RDMA device, no libfabric domain."""
    if not machine.efa_count:
        raise DoesNotApply(f"{machine.expected.instance_type} has no EFA")
    pci, device = machine.efa_pci()[-1], machine.efa_devices()[-1]
    change: Dict[str, Optional[Entry]] = dict.fromkeys(paths_below(files, f"root/sys/class/infiniband/{device}"))
    blocks = [
        block for block in text(files, "out/fi-info.txt").split("provider: ") if f"domain: {device}-rdm" not in block
    ]
    change["out/fi-info.txt"] = "provider: ".join(blocks).encode()
    change["out/lspci.txt"] = without_line(text(files, "out/lspci.txt"), pci).encode()
    if machine.efa_count == 1:
        change["tools/fi_info"] = without_efa(files["tools/fi_info"])
    return change


def _efa_no_provider(files: Mapping[str, Entry], machine: Machine) -> Change:
    if not machine.efa_count:
        raise DoesNotApply(f"{machine.expected.instance_type} has no EFA")
    return {"tools/fi_info": without_efa(files["tools/fi_info"]), "out/fi-info.txt": b""}


@applied
def _efa_port(files: Mapping[str, Entry], machine: Machine, state: str, physical: str) -> Change:
    if not machine.efa_count:
        raise DoesNotApply(f"{machine.expected.instance_type} has no EFA")
    base = f"root/sys/class/infiniband/{machine.efa_devices()[-1]}/ports/1"
    return {f"{base}/state": f"{state}\n".encode(), f"{base}/phys_state": f"{physical}\n".encode()}


def _no_p2p(files: Mapping[str, Entry], machine: Machine) -> Change:
    return {path: b"None\n" for path in paths_below(files, "root/sys/class/infiniband") if path.endswith("/device/p2p")}


def _lustre_evicted(files: Mapping[str, Entry], machine: Machine) -> Change:
    mount = "10.0.1.23@tcp:/abcdefgh /fsx lustre rw,seclabel,noatime,flock,lazystatfs 0 0\n"
    log = logged(
        "LustreError: 167-0: abcdefgh-OST0003-osc-ffff8a1b3c5d7000: This client was evicted by abcdefgh-OST0003; "
        "in progress operations using this service will fail."
    )
    return {"root/proc/mounts": (text(files, "root/proc/mounts") + mount).encode(), **log(files, machine)}


FAULTS: Tuple[Fault, ...] = (
    Fault("efa_missing", "one EFA device is not attached",
          "efa_count", Remedy.REPLACE, _efa_missing, also=("pci_devices", "efa_provider")),
    Fault("efa_no_provider", "libfabric finds no EFA device",
          "efa_provider", Remedy.UPDATE_SOFTWARE, _efa_no_provider, also=("efa_count",)),
    Fault("efa_port_down", "the port of one EFA device is down",
          "efa_ports", Remedy.REBOOT, _efa_port("1: DOWN", "3: Disabled")),
    Fault("plugin_too_old", "aws-ofi-nccl is older than the instance type needs",
          "software_compat", Remedy.UPDATE_SOFTWARE,
          edited("root/opt/amazon/efa_installed_packages", r"libnccl-ofi-[\d.]+", "libnccl-ofi-1.13.2"),
          type="p6-b200.48xlarge"),
    Fault("peer_memory_missing", "EFA cannot reach the GPUs' memory: a warning, the node stays go",
          "peer_memory", Remedy.FIX_CONFIG,
          together(edited("root/proc/modules", r"(?<=\n)efa_nv_peermem \d[^\n]*\n", ""),
               edited("root/sys/module/nvidia/taint", "OE", "POE"), _no_p2p), status=Status.WARN),
    Fault("mtu_mixed", "one interface has another MTU: a warning, the node stays go",
          "mtu", Remedy.FIX_CONFIG,
          edited(f"root/sys/class/net/{kernelfs.SECOND}/mtu", "9001", "1500"), status=Status.WARN),
    Fault("conntrack_full", "connections were dropped, too many were tracked: a warning, the node stays go",
          "ena_allowance", Remedy.INVESTIGATE,
          edited("out/ethtool.txt", r"(?<=conntrack_allowance_exceeded: )0", "412"), status=Status.WARN),
    Fault("lustre_evicted", "a Lustre server evicted the node",
          "lustre", Remedy.INVESTIGATE, _lustre_evicted),
    Fault("module_missing", "the EFA driver is not loaded",
          "kernel_modules", Remedy.FIX_CONFIG, edited("root/proc/modules", r"(?<=\n)efa \d[^\n]*\n", "")),
)  # fmt: skip
