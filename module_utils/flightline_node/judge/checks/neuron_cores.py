"""Has every Neuron device its cores?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, Optional

from ...model import Facts, Finding, Reason, Remedy
from ..context import Context
from .common import one_of_each
from .neuron_common import device, label, listed, neuron_check

GROUPING_DIFFERS = Reason("grouping_differs", "the logical cores' size differs between devices", Remedy.FIX_CONFIG)
NONE_LISTED = Reason("none_listed", "neuron-ls lists no device")
NO_NUMBER = Reason("no_number", "neuron-ls gives no number of cores", device="Neuron device")
OTHER_NUMBER = Reason("other_number", "a device has another number of cores", Remedy.REBOOT, "Neuron device")
UNKNOWN_NUMBER = Reason(
    "unknown_number", "a number of cores that is not known", Remedy.UPDATE_SOFTWARE, "Neuron device"
)
FEWER_CORES = Reason("fewer_cores", "a device lacks cores", device="Neuron device")


def _grouped(context: Context, row: Facts) -> int:
    """Physical cores to a logical one, by neuron-ls, else by neuron-monitor."""
    monitor = context.optional("neuron_monitor") or {}
    return row.get("lnc") or monitor.get("hardware", {}).get("lnc") or 1


def _physical(context: Context, row: Facts) -> Optional[int]:
    """neuron-ls counts logical cores where several physical ones make up one (Trn2's default is two)."""
    cores = row.get("cores")
    return cores * _grouped(context, row) if isinstance(cores, int) else None


def evaluate(context: Context) -> Iterator[Finding]:
    """Physical cores per device, as the type has them; all devices grouped alike."""
    wanted, rows = context.expected.neuron_cores, listed(context)
    findings = [finding for row in rows for finding in _judge(context, row, wanted)]
    groups = {row.get("lnc") for row in rows if row.get("lnc")}
    if len(groups) > 1:
        message = f"devices differ in physical cores per logical core: {one_of_each(groups)}"
        findings.append(context.fail(GROUPING_DIFFERS, message, measured=one_of_each(groups), expected="one number"))
    yield from findings
    if not rows:
        yield context.unknown(NONE_LISTED, "neuron-ls lists no device whose cores could be counted")
    elif not findings:
        each = f", {one_of_each(groups)} to a logical core" if groups else ""
        counts = one_of_each(_physical(context, row) for row in rows)
        yield context.ok(f"{counts} cores on each of {len(rows)} devices{each}")


def _judge(context: Context, row: Facts, wanted: Optional[int]) -> Iterator[Finding]:
    name, cores, physical = label(row["index"]), row.get("cores"), _physical(context, row)
    where: Dict[str, Any] = {"device": device(context, row["index"]), "unit": "cores"}
    if physical is None:
        yield context.unknown(NO_NUMBER, f"{name}: neuron-ls gives no number of cores", **where)
        return
    context.measure("neuron_cores", physical, "cores", name)
    if physical <= 0:
        message = f"{name} has no usable core, wanted {wanted or 'some'}"
        yield context.fail(OTHER_NUMBER, message, measured=physical, expected=wanted or "one or more", **where)
    elif wanted and wanted == 2 * physical and _may_be_logical(context, row):
        message = f"{name} has {cores} cores, and neuron-ls does not say how many physical ones make up one"
        yield context.unknown(UNKNOWN_NUMBER, message, measured=cores, expected=wanted, **where)
    elif wanted and wanted not in (physical, cores):
        message = f"{name} has {physical} cores, wanted {wanted}"
        remedy = Remedy.REBOOT if physical < wanted else Remedy.FIX_CONFIG
        yield context.fail(FEWER_CORES, message, remedy=remedy, measured=physical, expected=wanted, **where)


def _may_be_logical(context: Context, row: Facts) -> bool:
    """Trn2 groups two physical cores; a tool that prints the group and not its size leaves this open."""
    return context.expected.gpu_generation == "neuron-v3" and not row.get("lnc") and _grouped(context, row) == 1


CHECK = neuron_check(
    id="neuron_cores",
    order=900,
    title="NeuronCores",
    what="The cores of each Neuron device, counted as physical ones, and how many make up a logical core.",
    why="The ranks of a job are laid out over all cores: a device with fewer, or grouped in another way, has no place "
    "for its ranks.",
    remedy="Fewer: reload the driver or reboot, then replace. Grouped otherwise: set NEURON_LOGICAL_NC_CONFIG alike.",
    out_of_service="Yes: the job's ranks have no place.",
    source="AWS Neuron: Neuron LS user guide (nc_count, logical_neuroncore_config), NeuronCore v2 and v3 architecture",
    needs=("neuron_ls",),
    wants=("neuron_sysfs", "neuron_monitor"),
    tags=("neuron",),
    evaluate=evaluate,
)
