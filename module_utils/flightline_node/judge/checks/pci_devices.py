"""Are the GPUs, NVSwitches and EFA devices on the PCI bus?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional

from ...model import Check, Facts, Finding, Reason, Remedy, Skip
from .. import skips
from ..context import Context
from .efa_count import FEW
from .pcie_width import wanted_lanes

NOTHING_EXPECTED = "needs an instance type (or expected gpu_count, efa_count)"

OFF_BUS = Reason("off_bus", "a device reads as all ones", Remedy.REBOOT)
NOT_COUNTED = Reason("not_counted", "devices on the bus were not counted")
GPUS_MISSING = Reason("gpus_missing", "GPUs of the type are not on the bus", Remedy.REBOOT, counts=True)
MORE_GPUS = Reason("more_gpus", "more GPUs on the bus than the type has", Remedy.FIX_CONFIG)
SWITCHES_MISSING = Reason("switches_missing", "NVSwitches of the type are not on the bus", Remedy.REPLACE, counts=True)
NO_SWITCH = Reason("no_switch", "no NVSwitch is on the bus", counts=True)
NO_EFA = Reason("no_efa_on_bus", "no EFA device is on the bus", Remedy.FIX_CONFIG, counts=True)
EFA_LOST = Reason("efa_lost", "one or two EFA devices of many are not on the bus", Remedy.REPLACE, counts=True)
EFA_NOT_ATTACHED = Reason("efa_not_attached", "many EFA devices are not on the bus", Remedy.FIX_CONFIG, counts=True)
NARROW = Reason("narrow", "a GPU's PCIe link has fewer lanes than the type's or the other GPUs'", Remedy.REBOOT, "GPU")
BELOW_WIDEST = Reason("below_widest", "a GPU's PCIe link has fewer lanes than it can have", device="GPU")


def evaluate(context: Context) -> Iterator[Finding]:
    """Counts against the type, then devices that fell off the bus since the kernel listed them."""
    facts = context.facts("lspci")
    findings = [*_gpus(context, facts), *_switches(context, facts), *_efa(context, facts), *_narrow(context, facts)]
    for address in facts.get("rev_ff", []):
        message = f"{address} reads as all ones: fallen off the bus"
        rest = {"measured": "rev ff", "expected": "a device that answers", "evidence": [f"{address} (rev ff)"]}
        findings.append(context.fail(OFF_BUS, message, device={"pci": address}, **rest))
    yield from findings
    known = _known(context, facts)
    if not findings and known:
        yield context.ok("on the PCI bus: " + ", ".join(known))
    elif not findings:
        yield context.skip(skips.NO_PCI_EXPECTED.because(NOTHING_EXPECTED))


def _gpus(context: Context, facts: Facts) -> Iterator[Finding]:
    wanted, found = context.expected.gpu_count, facts.get("nvidia_gpus")
    if wanted is None or context.expected.has_nvidia_gpu is not True:
        return
    context.measure("pci_gpus", found, "GPUs")
    evidence = facts.get("gpu_addresses", [])
    rest: Dict[str, Any] = {"measured": found, "expected": wanted, "unit": "GPUs", "evidence": evidence}
    if found is None and facts.get("filtered"):
        return
    if found is None:
        yield context.unknown(NOT_COUNTED, "the GPUs on the PCI bus were not counted", **rest)
    elif found < wanted:
        yield context.fail(GPUS_MISSING, f"{found} of {wanted} GPUs on the PCI bus: {wanted - found} missing", **rest)
    elif found > wanted:
        yield context.fail(MORE_GPUS, f"{found} GPUs on the PCI bus, wanted {wanted}: wrong instance type", **rest)


def _switches(context: Context, facts: Facts) -> Iterator[Finding]:
    wanted = context.expected.nvswitch_count
    found = facts.get("nvidia_bridges")
    if wanted is None or found is None or found >= wanted:
        return
    rest = {"measured": found, "expected": wanted, "unit": "NVSwitches"}
    if found:
        yield context.fail(SWITCHES_MISSING, f"{found} of {wanted} NVSwitches on the PCI bus", **rest)
    else:
        # All gone at once is how a host that hides them looks; fabric_manager tells the difference.
        yield context.warn(NO_SWITCH, f"none of {wanted} NVSwitches on the PCI bus", **rest)


def _efa(context: Context, facts: Facts) -> Iterator[Finding]:
    wanted, found = context.expected.efa_count, facts.get("efa")
    if not wanted:
        return
    context.measure("pci_efa", found, "devices")
    rest: Dict[str, Any] = {"measured": found, "expected": wanted, "unit": "EFA devices"}
    if found is None and facts.get("filtered"):
        return
    if found is None:
        yield context.unknown(NOT_COUNTED, "the EFA devices on the PCI bus were not counted", **rest)
    elif found == 0:
        yield context.fail(NO_EFA, f"no EFA device on the PCI bus, wanted {wanted}: none was attached", **rest)
    elif found < wanted:
        evidence = facts.get("efa_addresses", [])
        few = wanted - found <= FEW
        why = "lost, or not attached at launch" if few else "not attached at launch"
        message = f"{found} of {wanted} EFA devices on the PCI bus: the others are {why}"
        yield context.fail(EFA_LOST if few else EFA_NOT_ATTACHED, message, evidence=evidence, **rest)


def _narrow(context: Context, facts: Facts) -> Iterator[Finding]:
    """GPUs whose link lost lanes, by `lspci -vv`. Not of the speed: an idle link is slowed down to save power."""
    gpus = facts.get("gpu_addresses", [])
    links = {address: link for address, link in facts.get("links", {}).items() if address in gpus}
    widest = max((link["width"] for link in links.values() if "width" in link), default=0)
    for address, link in links.items():
        width, most = link.get("width", 0), link.get("width_max", 0)
        wanted = max(wanted_lanes(context, most) or 0, widest)
        rest: Dict[str, Any] = {"measured": width, "expected": wanted, "unit": "lanes", "device": {"pci": address}}
        if 0 < width < wanted:
            yield context.fail(NARROW, f"{address}: PCIe x{width}, wanted x{wanted:g}", **rest)
        elif 0 < width < most and not wanted_lanes(context, most):
            text = f"{address}: PCIe x{width} of x{most}; set expected pcie_width if that is normal on this type"
            yield context.warn(BELOW_WIDEST, text, **{**rest, "expected": most})


def _known(context: Context, facts: Facts) -> List[str]:
    known = []
    if context.expected.gpu_count is not None and context.expected.has_nvidia_gpu and "nvidia_gpus" in facts:
        known.append(f"{facts.get('nvidia_gpus')} GPUs")
    if context.expected.efa_count and "efa" in facts:
        known.append(f"{facts.get('efa')} EFA devices")
    if context.expected.nvswitch_count and "nvidia_bridges" in facts:
        known.append(f"{facts.get('nvidia_bridges')} NVSwitches")
    return known


def _to_look_at(context: Context) -> Optional[Skip]:
    """Without an expectation only devices off the bus count, and those need an output to look at."""
    expected = context.expected
    nothing = expected.gpu_count is None and expected.efa_count is None and context.optional("lspci") is None
    return skips.NO_PCI_EXPECTED.because(NOTHING_EXPECTED) if nothing else None


CHECK = Check(
    id="pci_devices",
    order=640,
    title="PCI devices",
    what="GPUs, NVSwitches and EFA devices that the PCI bus shows, against the instance type.",
    why="A device lost from the bus is lost to every tool above it; this tells hardware from driver trouble.",
    remedy="Reboot once for a lost GPU. EFA: correct the launch template. If it does not return, replace the instance.",
    do="EFA: correct the launch template. If it does not return, replace the instance.",
    out_of_service="Yes: a device that is paid for is missing.",
    source="AWS instance type tables; PCI IDs 10de (NVIDIA), 1d0f:efa0-efa4 (EFA)",
    needs=("lspci",),
    tags=("host", "pci"),
    applies=_to_look_at,
    skips=(skips.NO_PCI_EXPECTED,),
    evaluate=evaluate,
)
