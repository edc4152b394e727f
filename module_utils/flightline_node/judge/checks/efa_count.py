"""Are all the EFA devices of the instance type there, on the bus, in the driver and in libfabric?"""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional

from ...model import Check, Finding, Reason, Remedy, Skip
from .. import skips
from ..context import Context

PCI, DRIVER, LIBFABRIC = "PCI (lspci)", "driver (sysfs)", "libfabric (fi_info)"
FEW = 2
"""So few missing of many are lost devices; more were never attached at launch."""

NO_SOURCE = Reason("no_source", "no source gives a number of EFA devices")
DISAGREE = Reason("disagree", "the sources disagree on the number of EFA devices", Remedy.REBOOT, counts=True)
NONE_IN_LIBFABRIC = Reason("none_in_libfabric", "libfabric lists no EFA device, another source does", Remedy.REBOOT)
NONE = Reason("none", "no source has an EFA device", Remedy.FIX_CONFIG, counts=True)
TOO_FEW = Reason("too_few", "EFA devices of the type are missing", Remedy.FIX_CONFIG, counts=True)
TOO_MANY = Reason("too_many", "more EFA devices than the type has", Remedy.FIX_CONFIG)


def no_efa(context: Context) -> Optional[Skip]:
    """Why a check of EFA is skipped on an instance type without it, else None."""
    if context.expected.efa_count == 0:
        return skips.NO_EFA.because(f"{context.expected.instance_type} has no EFA")
    return None


def _counts(context: Context) -> Dict[str, int]:
    """EFA devices by source. mlx5 bridges of P6 nodes are no EFA: every source counts only efa."""
    lspci, sysfs, libfabric = (context.optional(name) or {} for name in ("lspci", "efa_counters", "fi_info"))
    found = {PCI: lspci.get("efa"), DRIVER: sysfs.get("count")}
    if "devices" in libfabric:
        found[LIBFABRIC] = len(libfabric["devices"])
    return {name: count for name, count in found.items() if isinstance(count, int)}


def _lost(context: Context) -> List[str]:
    """Devices that the driver has and libfabric does not list."""
    sysfs, libfabric = context.optional("efa_counters") or {}, context.optional("fi_info") or {}
    return sorted(set(sysfs.get("devices", {})) - set(libfabric.get("devices", []))) if libfabric.get("devices") else []


def evaluate(context: Context) -> Iterator[Finding]:
    """Every source against the type, and against each other."""
    counts, wanted = _counts(context), context.expected.efa_count or 0
    if not counts and (context.optional("lspci") or {}).get("filtered"):
        yield context.skip(skips.NOT_COLLECTED.because("the list shows the devices of one vendor"))
        return
    if not counts:
        yield context.unknown(NO_SOURCE, "no source gives a number of EFA devices")
        return
    least, most = min(counts.values()), max(counts.values())
    seen = ", ".join(f"{name} {count}" for name, count in counts.items())
    context.measure("efa_count", least, "devices")
    rest = {"measured": least, "expected": wanted, "unit": "devices"}
    if least < most:
        why = DISAGREE if counts.get(LIBFABRIC) != 0 else NONE_IN_LIBFABRIC
        yield context.fail(why, f"sources disagree, wanted {wanted}: {seen}", evidence=_lost(context), **rest)
    elif least < wanted:
        why = TOO_FEW if counts.get(LIBFABRIC) != 0 else NONE
        remedy = Remedy.REPLACE if least and wanted - least <= FEW else why.remedy
        yield context.fail(why, f"{least} of {wanted} EFA devices: {seen}", remedy=remedy, **rest)
    elif least > wanted:
        yield context.warn(TOO_MANY, f"{least} EFA devices, wanted {wanted}: {seen}; wrong type?", **rest)
    else:
        yield context.ok(f"{least} EFA devices: {seen}", **rest)


CHECK = Check(
    id="efa_count",
    order=740,
    title="EFA device count",
    what="EFA devices on the PCI bus, in the efa driver and in libfabric, against the instance type.",
    why="NCCL spreads its traffic over the devices it finds: one missing slows the whole job, none stops it.",
    remedy="One or two missing, or sources disagree: reboot, then replace. Many: attach them in the launch template.",
    do="Many: attach them in the launch template.",
    out_of_service="Yes: the whole job is slower. Set expected efa_count where fewer are meant.",
    first="fi_info -p efa -t FI_EP_RDM; lspci -d 1d0f:",
    source="AWS EC2 user guide, EFA and network cards by instance type (MaximumEfaInterfaces)",
    needs_any=("fi_info", "efa_counters", "lspci"),
    expects=("efa_count",),
    tags=("efa", "network"),
    applies=no_efa,
    skips=(skips.NO_EFA,),
    evaluate=evaluate,
)
