"""lspci in its plain, -D, -n, -nn, -k, -v to -vvv and -mm forms: GPUs, NVSwitches, EFA, ENA and Neuron devices."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v
from .lazy import Lazy

FILES = ("lspci.txt",)

_DEVICE = re.compile(r"((?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\s+(\S.*)")
_NUMERIC = re.compile(r"(?:Class )?([0-9a-f]{4}): ([0-9a-f]{4}):([0-9a-f]{4})\b")
_IDS = re.compile(r"\[([0-9a-f]{4}):([0-9a-f]{4})\]")
_CLASS = re.compile(r"\[([0-9a-f]{4})\]$")
_LINK = Lazy(r"\s+LnkSta:\s+Speed ([\d.]{1,8})GT/s[^,]{0,40}, Width x(\d{1,3})")
_CAN = Lazy(r"\s+LnkCap:\s+.{0,40}?Speed [\d.]{1,8}GT/s[^,]{0,40}, Width x(\d{1,3})")

NVIDIA, AMAZON = "10de", "1d0f"
_GPU_CLASSES = {"0300": "VGA compatible controller", "0302": "3D controller", "0380": "Display controller"}
_BRIDGE_CLASSES = {"0680": "Bridge"}
_ENA_IDS = frozenset({"0ec2", "1ec2", "ec20", "ec21"})
_NEURON_IDS = frozenset({"7164", "7264", "7364"})
"""Trainium, Inferentia2, Trainium2 (aws-neuron-driver neuron_device.h); pci.ids calls them NeuronDevice."""
_FILTERED = {"nvidia": ("efa", "ena", "neuron"), "amazon": ("nvidia_gpus", "nvidia_bridges")}
_KINDS = ("gpu", "bridge", "efa", "ena", "neuron")


def parse(files: Mapping[str, Data]) -> Facts:
    """Counts and addresses of the devices that matter.

    {nvidia_gpus, nvidia_bridges, efa, ena, neuron: counts; gpu_addresses[] bridge_addresses[] efa_addresses[]
    ena_addresses[] neuron_addresses[]; rev_ff[]; links{address: {speed_gt_s width width_max}}; drivers{address: name};
    devices: count; filtered: the list is of one vendor's devices, and has no count of others}.

    Addresses are dddd:bb:dd.f in lower case. rev_ff: devices whose configuration space reads
    as all ones (fallen off the bus); they count as well. links needs -vv, drivers -k or -v.
    """
    found: Dict[str, List[str]] = {kind: [] for kind in _KINDS}
    facts: Dict[str, Any] = {"rev_ff": [], "links": {}, "drivers": {}}
    address, devices, others = "", 0, False
    for line in v.lines(t.only(files)):
        match = _DEVICE.match(line)
        if match:
            address, devices = _full(match.group(1)), devices + 1
            kind = _kind(match.group(2))
            others = others or kind is None
            if kind:
                found[kind].append(address)
            if "(rev ff)" in line:
                facts["rev_ff"].append(address)
        elif address and line[:1].isspace():
            _detail(line, address, facts)
    if not devices:
        raise ParseError("no PCI device in it: not lspci's output")
    addresses = {f"{kind}_addresses": found[kind] for kind in _KINDS}
    counts = {"nvidia_gpus": found["gpu"], "nvidia_bridges": found["bridge"], "efa": found["efa"], "ena": found["ena"]}
    counts["neuron"] = found["neuron"]
    # A machine has a host bridge; what `grep` or `-d` left of the list says nothing of the other vendor's devices.
    nvidia, amazon = bool(found["gpu"] or found["bridge"]), bool(found["efa"] or found["ena"] or found["neuron"])
    for name in () if others or nvidia == amazon else _FILTERED["nvidia" if nvidia else "amazon"]:
        del counts[name]
        facts["filtered"] = True
    return {**{name: len(items) for name, items in counts.items()}, **addresses, **facts, "devices": devices}


def _full(address: str) -> str:
    """The address with its domain: lspci leaves the domain out when every device is in domain 0."""
    return (address if address.count(":") == 2 else "0000:" + address).lower()


def _kind(rest: str) -> Optional[str]:
    numeric = _NUMERIC.match(rest)
    if numeric:
        return _classify(numeric.group(1), numeric.group(2), numeric.group(3), "")
    if rest.startswith('"'):  # -mm: every field in quotes
        rest = rest.replace('" "', ": ", 1).replace('"', "")
    head, _, name = rest.partition(": ")
    ids = _IDS.findall(name)
    vendor, device = ids[-1] if ids else (_vendor(name), "")
    match = _CLASS.search(head)
    code = match.group(1) if match else ""
    return _classify(code or _class_named(head), vendor, device, name)


def _vendor(name: str) -> str:
    if name.startswith("NVIDIA"):
        return NVIDIA
    return AMAZON if name.startswith("Amazon") else ""


def _class_named(head: str) -> str:
    names = {name: code for table in (_GPU_CLASSES, _BRIDGE_CLASSES) for code, name in table.items()}
    return names.get(head.strip(), "")


def _classify(code: str, vendor: str, device: str, name: str) -> Optional[str]:
    if vendor == NVIDIA:
        return "gpu" if code in _GPU_CLASSES else "bridge" if code in _BRIDGE_CLASSES else None
    if vendor != AMAZON:
        return None
    # An old PCI database prints "Device efa1" instead of the name.
    if device.startswith("efa") or "(EFA)" in name or "Elastic Fabric Adapter" in name or " Device efa" in name:
        return "efa"
    if device in _ENA_IDS or "Elastic Network Adapter" in name or " Device ec2" in name:
        return "ena"
    if device in _NEURON_IDS or "NeuronDevice" in name:
        return "neuron"
    return None


def _detail(line: str, address: str, facts: Dict[str, Any]) -> None:
    match, can = _LINK.match(line), _CAN.match(line)
    if can:
        facts["links"].setdefault(address, {})["width_max"] = int(can.group(1))
    elif match:
        seen = {"speed_gt_s": v.real(match.group(1)), "width": int(match.group(2))}
        facts["links"].setdefault(address, {}).update(seen)
    elif "Kernel driver in use:" in line:
        facts["drivers"][address] = line.partition("use:")[2].strip()
    elif "Unknown header type 7f" in line and address not in facts["rev_ff"][-1:]:
        facts["rev_ff"].append(address)
