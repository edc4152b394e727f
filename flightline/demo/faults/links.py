"""Faults of NVLink, NVSwitch and the fabric."""

from __future__ import annotations

import json
import re
from typing import Dict, List, Mapping, Tuple

from flightline_node.model import Remedy

from ..hardware import Machine
from ..tree import Entry, text
from .change import logged, set_smi, substituted, target, together
from .fault import Change, DoesNotApply, Fault, applied


@applied
def _nvlink(files: Mapping[str, Entry], machine: Machine, link: int, state: str) -> Change:
    if not machine.links:
        raise DoesNotApply(f"{machine.expected.instance_type} has no NVLink")
    blocks = text(files, "out/nvlink-status.txt").split("GPU ")
    index = 1 + target(machine)
    blocks[index] = substituted(blocks[index], f"Link {link}: [^\n]*", f"Link {link}: {state}", "link")
    return {"out/nvlink-status.txt": "GPU ".join(blocks).encode()}


@applied
def _topology(files: Mapping[str, Entry], machine: Machine, link: str) -> Change:
    """Give one GPU another kind of way to every other GPU."""
    if not machine.switched:
        raise DoesNotApply("it has no NVSwitch")
    index, lines = target(machine), text(files, "out/nvidia-smi-topo.txt").split("\n")
    for row in range(machine.gpu_count):
        cells = lines[row + 1].split("\t")
        for column in range(machine.gpu_count):
            if row != column and index in (row, column):
                cells[column + 1] = link
        lines[row + 1] = "\t".join(cells)
    return {"out/nvidia-smi-topo.txt": "\n".join(lines).encode()}


@applied
def _link_error(files: Mapping[str, Entry], machine: Machine, counter: str, count: int) -> Change:
    blocks = re.split(r"^(?=GPU \d+)", text(files, "out/nvlink-errors.txt"), flags=re.MULTILINE)
    index = 1 + target(machine)
    if len(blocks) <= index:
        raise DoesNotApply("it has no NVLink")
    blocks[index] = substituted(blocks[index], f"Link 7: {counter}: 0", f"Link 7: {counter}: {count}", counter)
    return {"out/nvlink-errors.txt": "".join(blocks).encode()}


def _switched(files: Mapping[str, Entry], machine: Machine) -> Change:
    """Change nothing, but ask for NVSwitches that this kernel's driver reports on."""
    if not machine.switched or machine.bridged or machine.arm:
        raise DoesNotApply("it has no NVSwitch of its own")
    return {}


_SWITCH = "nvidia-nvswitch3: SXid (PCI:0000:d3:00.0): 20034, "


@applied
def _service(files: Mapping[str, Entry], machine: Machine, unit: str, active: str, sub: str) -> Change:
    units: List[Dict[str, str]] = json.loads(text(files, "out/services.json"))
    if not any(entry["unit"] == unit for entry in units):
        raise DoesNotApply(f"{machine.expected.instance_type} does not run {unit}")
    units = [{**entry, "active": active, "sub": sub} if entry["unit"] == unit else entry for entry in units]
    return {"out/services.json": (json.dumps(units) + "\n").encode()}


FAULTS: Tuple[Fault, ...] = (
    Fault("sxid_fatal", "a fatal NVSwitch error",
          "sxid", Remedy.RESET_GPU,
          together(_switched,
               logged(_SWITCH + "Fatal, Link 30 LTSSM Fault Up",
                    _SWITCH + "Severity 1 Engine instance 30 Sub-engine instance 00",
                    _SWITCH + "Data {{0x00000001, 0x00000000, 0x00000001, 0x00000000}}"))),
    Fault("nvlink_inactive", "one NVLink of one GPU is down",
          "nvlink_links", Remedy.REBOOT, _nvlink(7, "<inactive>")),
    Fault("fabric_manager_dead", "Fabric Manager is not running",
          "fabric_manager", Remedy.FIX_CONFIG, _service("nvidia-fabricmanager.service", "failed", "failed")),
    Fault("fabric_not_ready", "one GPU has not joined the NVSwitch fabric",
          "fabric_state", Remedy.FIX_CONFIG, set_smi(("fabric/state", "In Progress"), ("fabric/status", "N/A"))),
    Fault("nvlink_errors", "an NVLink of one GPU had to recover",
          "nvlink_errors", Remedy.RESET_GPU, _link_error("Recovery Errors", 4)),
    Fault("topology_degraded", "one GPU reaches the others over PCIe instead of NVLink",
          "gpu_topology", Remedy.REBOOT, _topology("SYS")),
)  # fmt: skip
