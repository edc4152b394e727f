"""Has the Neuron runtime met errors of the hardware, and can its programs be asked?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

from ...model import Facts, Finding, Reason, Remedy
from .. import skips
from ..context import Context
from .neuron_common import OF_NEURON, device, label, neuron_check

NOT_MONITORED = Reason("not_monitored", "neuron-monitor could not measure")
UNCORRECTED = Reason("uncorrected", "uncorrectable errors", device="Neuron device")
CORRECTED = Reason("corrected", "corrected errors", device="Neuron device")
RUNTIME_HARDWARE = Reason("runtime_hardware", "the runtime counts hardware errors", Remedy.REPLACE)
RUNTIME_TIMED_OUT = Reason("runtime_timed_out", "the runtime counts executions that timed out")

# Driver counters of runtime results (neuron_sysfs_metrics.c) -> what it was, remedy (AWS troubleshooting page); None: a
# hang that another node may have caused, or one that a program may: it warns.
COUNTERS: Dict[str, Tuple[str, Any]] = {
    "hw_nc_ue_error": ("uncorrectable SRAM errors met by programs", Remedy.REPLACE),
    "hw_hbm_ue_error": ("uncorrectable HBM errors met by programs", Remedy.REPLACE),
    "hw_dma_abort_error": ("DMA engine aborts", Remedy.REPLACE),
    "hw_repairable_hbm_ue_error": ("repairable HBM errors met by programs", Remedy.REBOOT),
    "hw_error": ("hardware errors met by programs", Remedy.REBOOT),
    "reset_fail_count": ("failed resets", Remedy.REBOOT),
    "hw_collectives_error": ("hung collectives", None),
    "timeout": ("executions that timed out", None),
}


def evaluate(context: Context) -> Iterator[Finding]:
    """The driver's counts since it was loaded, then what the programs running now report."""
    rows = (context.optional("neuron_sysfs") or {}).get("devices", [])
    monitor = context.optional("neuron_monitor") or {}
    findings = [finding for row in rows for finding in _counted(context, row)]
    findings += [finding for runtime in monitor.get("runtimes", []) for finding in _running(context, runtime)]
    findings += [
        context.unknown(
            NOT_MONITORED,
            f"neuron-monitor could not measure {error['where']}: {error['text']}",
            evidence=[error["text"]],
        )
        for error in monitor.get("errors", [])
    ]
    yield from findings
    known = [row for row in rows if row.get("counters")]
    if not findings and not known and not monitor.get("runtimes"):
        yield context.skip(skips.DRIVER_SILENT.because("no counter of the runtime and no program to ask"))
    elif not findings:
        programs = f", {len(monitor['runtimes'])} programs" if monitor.get("runtimes") else ""
        yield context.ok(f"no hardware error or hang counted on {len(known)} devices{programs}")


def _counted(context: Context, row: Facts) -> Iterator[Finding]:
    name, where = label(row["index"]), {"device": device(context, row["index"]), "expected": 0}
    for counter, (what, remedy) in COUNTERS.items():
        count = row.get("counters", {}).get(counter, 0)
        message = f"{name}: {count} {what} since the driver was loaded"
        if count and remedy:
            yield context.fail(
                UNCORRECTED, message, remedy=remedy, measured=count, evidence=[f"{counter}: {count}"], **where
            )
        elif count:
            yield context.warn(CORRECTED, message, measured=count, evidence=[f"{counter}: {count}"], **where)


def _running(context: Context, runtime: Facts) -> Iterator[Finding]:
    name, where = f"program {runtime.get('tag') or runtime.get('pid')} (pid {runtime.get('pid')})", {"expected": 0}
    hardware = runtime["errors"].get("hardware", 0)
    timed_out, done = (runtime["executions"].get(key, 0) for key in ("timed_out", "completed"))
    if hardware:
        message = f"{name} reports {hardware} hardware errors in the measured period"
        yield context.fail(RUNTIME_HARDWARE, message, measured=hardware, evidence=_lines(runtime), **where)
    if timed_out:
        message = f"{name}: {timed_out} executions timed out and {done} ended well in the measured period"
        yield context.fail(RUNTIME_TIMED_OUT, message, measured=timed_out, evidence=_lines(runtime), **where)


def _lines(runtime: Facts) -> List[str]:
    return [f"{key}: {value}" for part in ("errors", "executions") for key, value in runtime[part].items() if value]


CHECK = neuron_check(
    id="neuron_errors",
    order=970,
    title="Neuron runtime errors",
    what="Hardware errors, hangs and failed resets that the driver counts for each device, and those of the programs "
    "that run now, by neuron-monitor. An error that neuron-monitor reports of itself is UNKNOWN.",
    why="These are the errors that end a job; counted once, they come again.",
    remedy="Uncorrectable errors and DMA aborts: replace. Failed resets: reboot. Hangs: look for the worker at fault.",
    do="Hangs: look for the worker at fault.",
    out_of_service="Yes for hardware errors and failed resets; hangs that another node may have caused warn.",
    source="AWS Neuron troubleshooting page, Hardware Errors; Neuron Monitor and Neuron Sysfs user guides",
    needs_any=("neuron_sysfs", "neuron_monitor"),
    wants=("neuron_ls",),
    tags=("neuron",),
    skips=(*OF_NEURON, skips.DRIVER_SILENT),
    evaluate=evaluate,
)
