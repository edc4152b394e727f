"""Are all the Neuron devices of the instance type there, on the bus, in the driver and in neuron-ls?"""

from __future__ import annotations

from typing import Any, Dict, Iterator

from ...model import Finding, Reason, Remedy
from ..context import Context
from .neuron_common import listed, neuron_check, told, typed

PCI, DRIVER, TOOL = "PCI (lspci)", "driver (sysfs)", "neuron-ls"

NONE_LISTED = Reason("none_listed", "neuron-ls lists no device", Remedy.REBOOT)
TOO_FEW = Reason("too_few", "Neuron devices of the type are missing", Remedy.REBOOT, counts=True)
TOO_MANY = Reason("too_many", "more Neuron devices than the type has", Remedy.FIX_CONFIG)


def _counts(context: Context) -> Dict[str, int]:
    lspci, sysfs = context.optional("lspci") or {}, context.optional("neuron_sysfs") or {}
    found: Dict[str, Any] = {PCI: lspci.get("neuron") or None, TOOL: len({row["index"] for row in listed(context)})}
    if "devices" in sysfs:
        found[DRIVER] = len(sysfs["devices"])
    return {name: count for name, count in found.items() if isinstance(count, int)}


def _remedy(context: Context, counts: Dict[str, int], wanted: int) -> Remedy:
    """The driver first where the bus shows the devices; else the machine."""
    sysfs = context.optional("neuron_sysfs") or {}
    if counts[TOOL] == 0 and not sysfs.get("driver"):
        return Remedy.UPDATE_SOFTWARE
    return Remedy.REBOOT if counts.get(PCI, 0) >= wanted or PCI not in counts else Remedy.REPLACE


def evaluate(context: Context) -> Iterator[Finding]:
    """Every source against the type; without a type against each other."""
    counts = _counts(context)
    least, most = min(counts.values()), max(counts.values())
    wanted = (context.expected.gpu_count or 0) if typed(context) else most
    seen = ", ".join(f"{name} {count}" for name, count in counts.items())
    said = list(told(context))
    context.measure("neuron_devices", counts[TOOL], "devices")
    rest = {"measured": least, "expected": wanted or "a device", "unit": "devices", "evidence": said}
    remedy = _remedy(context, counts, wanted)
    if counts[TOOL] == 0:
        message = f"neuron-ls lists no device ({said[0]})" if said else "neuron-ls lists no device"
        yield context.fail(NONE_LISTED, f"{message}, wanted {wanted or 'one'}: {seen}", remedy=remedy, **rest)
    elif least < wanted:
        yield context.fail(TOO_FEW, f"{least} of {wanted} Neuron devices: {seen}", remedy=remedy, **rest)
    elif most > wanted:
        message = f"{most} Neuron devices, wanted {wanted}: {seen}; wrong instance type?"
        yield context.fail(TOO_MANY, message, **{**rest, "measured": most})
    else:
        yield context.ok(f"{least} Neuron devices: {seen}", **rest)


CHECK = neuron_check(
    id="neuron_devices",
    order=890,
    title="Neuron device count",
    what="Neuron devices on the PCI bus, in the neuron driver and in neuron-ls, against the instance type.",
    why="A job that asks for all NeuronCores does not start with one device less, and the driver then shows no "
    "NeuronLink neighbours at all.",
    remedy="No driver: install aws-neuronx-dkms for the running kernel and load it. A device that the bus has and the "
    "driver lacks: reboot. One that the bus lacks: replace the instance.",
    do="No driver: install aws-neuronx-dkms for the running kernel and load it.",
    out_of_service="Yes: a job that asks for all NeuronCores does not start.",
    source="AWS Neuron: Neuron LS user guide, Trn1, Trn2 and Inf2 architecture",
    needs=("neuron_ls",),
    wants=("neuron_sysfs", "lspci"),
    tags=("neuron",),
    evaluate=evaluate,
)
