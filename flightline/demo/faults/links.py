"""Faults of NVLink, NVSwitch and the fabric."""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, Tuple

from flightline_node.model import Remedy

from ..hardware import Machine
from ..tree import Entry, text
from .change import logged, rewritten, set_smi, substituted, target, together
from .fault import Change, DoesNotApply, Fault


def _inactive(files: Mapping[str, Entry], machine: Machine) -> Change:
    if not machine.links:
        raise DoesNotApply(f"{machine.expected.instance_type} has no NVLink")
    blocks = text(files, "out/nvlink-status.txt").split("GPU ")
    index = 1 + target(machine)
    blocks[index] = substituted(blocks[index], "Link 7: [^\n]*", "Link 7: <inactive>", "link")
    return {"out/nvlink-status.txt": "GPU ".join(blocks).encode()}


def _over_pcie(files: Mapping[str, Entry], machine: Machine) -> Change:
    """Give one GPU another kind of way to every other GPU."""
    if not machine.switched:
        raise DoesNotApply("it has no NVSwitch")
    index, lines = target(machine), text(files, "out/nvidia-smi-topo.txt").split("\n")
    for row in range(machine.gpu_count):
        cells = lines[row + 1].split("\t")
        for column in range(machine.gpu_count):
            if row != column and index in (row, column):
                cells[column + 1] = "SYS"
        lines[row + 1] = "\t".join(cells)
    return {"out/nvidia-smi-topo.txt": "\n".join(lines).encode()}


def _recovered(files: Mapping[str, Entry], machine: Machine) -> Change:
    blocks = re.split(r"^(?=GPU \d+)", text(files, "out/nvlink-errors.txt"), flags=re.MULTILINE)
    index, counter = 1 + target(machine), "Recovery Errors"
    if len(blocks) <= index:
        raise DoesNotApply("it has no NVLink")
    blocks[index] = substituted(blocks[index], f"Link 7: {counter}: 0", f"Link 7: {counter}: 4", counter)
    return {"out/nvlink-errors.txt": "".join(blocks).encode()}


def _switched(files: Mapping[str, Entry], machine: Machine) -> Change:
    """Change nothing, but ask for NVSwitches that this kernel's driver reports on."""
    if not machine.switched or machine.bridged or machine.arm:
        raise DoesNotApply("it has no NVSwitch of its own")
    return {}


_MANAGER = "nvidia-fabricmanager.service"
_SWITCH = "nvidia-nvswitch3: SXid (PCI:0000:d3:00.0): 20034, "


def _failed(units: List[Dict[str, str]], machine: Machine) -> None:
    manager = next((entry for entry in units if entry["unit"] == _MANAGER), None)
    if manager is None:
        raise DoesNotApply(f"{machine.expected.instance_type} does not run {_MANAGER}")
    manager.update(active="failed", sub="failed")


FAULTS: Tuple[Fault, ...] = (
    Fault("sxid_fatal", "a fatal NVSwitch error",
          "sxid", Remedy.RESET_GPU,
          together(_switched,
               logged(_SWITCH + "Fatal, Link 30 LTSSM Fault Up",
                    _SWITCH + "Severity 1 Engine instance 30 Sub-engine instance 00",
                    _SWITCH + "Data {{0x00000001, 0x00000000, 0x00000001, 0x00000000}}"))),
    Fault("nvlink_inactive", "one NVLink of one GPU is down",
          "nvlink_links", Remedy.REBOOT, _inactive),
    Fault("fabric_manager_dead", "Fabric Manager is not running",
          "fabric_manager", Remedy.FIX_CONFIG, rewritten("out/services.json", _failed)),
    Fault("fabric_not_ready", "one GPU has not joined the NVSwitch fabric",
          "fabric_state", Remedy.FIX_CONFIG, set_smi(("fabric/state", "In Progress"), ("fabric/status", "N/A"))),
    Fault("nvlink_errors", "an NVLink of one GPU had to recover",
          "nvlink_errors", Remedy.RESET_GPU, _recovered),
    Fault("topology_degraded", "one GPU reaches the others over PCIe instead of NVLink",
          "gpu_topology", Remedy.REBOOT, _over_pcie),
)  # fmt: skip
