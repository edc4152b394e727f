"""Has the memory of the host counted errors?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List

from ...model import Check, Finding, Reason, Remedy, Threshold
from .. import skips
from ..context import Context
from .common import is_number

COUNTERS_UNREAD = Reason("counters_unread", "the memory's error counters could not be read")
UNCORRECTED = Reason("uncorrected", "uncorrected errors of the host's memory", Remedy.REPLACE)
CORRECTED = Reason("corrected", "many corrected errors of the host's memory")

_UNCORRECTED, _CORRECTED = ("ue_count", "ue_noinfo_count"), ("ce_count", "ce_noinfo_count")
ABSENT = "the kernel reports on no memory controller: a virtual instance does not see it, the host's own does"


def evaluate(context: Context) -> Iterator[Finding]:
    """The counters of every memory controller, since its driver was loaded."""
    controllers: Dict[str, Dict[str, Any]] = context.facts("sysfs").get("edac", {})
    findings: List[Finding] = []
    for name, counters in controllers.items():
        findings += _judge(context.of({"name": name}, name), counters)
    yield from findings
    if not controllers:
        yield context.skip(skips.NONE_HERE.because(ABSENT))
    elif not findings:
        total = sum(_sum(counters, _CORRECTED) for counters in controllers.values())
        message = f"{len(controllers)} memory controllers: no uncorrected error, {total} corrected"
        yield context.ok(message, measured=total, unit="errors")


def _sum(counters: Dict[str, Any], names: Any) -> int:
    """The counts of a kind; ue_count contains ue_noinfo_count on some kernels, so the larger stands."""
    return max((int(counters[name]) for name in names if is_number(counters.get(name))), default=0)


def _judge(context: Context, counters: Dict[str, Any]) -> Iterator[Finding]:
    if not is_number(counters.get("ue_count")) or not is_number(counters.get("ce_count")):
        shown = counters.get("ue_count") if not is_number(counters.get("ue_count")) else counters.get("ce_count")
        yield context.unknown(COUNTERS_UNREAD, f"the error counters could not be read: {shown}")
        return
    uncorrected, corrected = _sum(counters, _UNCORRECTED), _sum(counters, _CORRECTED)
    context.measure("edac_corrected", corrected, "errors")
    limit = context.threshold("corrected")
    if uncorrected:
        message = f"{uncorrected} memory errors that ECC could not correct"
        yield context.fail(UNCORRECTED, message, uncorrected, 0, "errors")
    if corrected >= limit:
        message = f"{corrected} corrected memory errors, wanted under {limit:g}"
        yield context.warn(CORRECTED, message, corrected, limit, "errors")


CHECK = Check(
    id="edac",
    order=470,
    title="Host memory errors (EDAC)",
    what="Uncorrected and corrected errors of the host's memory controllers, on bare-metal instances.",
    why="An uncorrected error ends a process or the kernel; many corrected ones slow the memory and announce more.",
    remedy="Uncorrected: replace the instance. Corrected: watch the count, replace when it grows.",
    do="Corrected: watch the count, replace when it grows.",
    out_of_service="Yes for uncorrected errors; corrected ones warn.",
    first="grep -H . /sys/devices/system/edac/mc/mc*/[cu]e_count",
    source="Linux ABI, /sys/devices/system/edac/mc",
    needs=("sysfs",),
    tags=("host", "memory"),
    thresholds=(
        Threshold(
            "corrected",
            100,
            "errors",
            "corrected errors of a memory controller that are worth a warning",
            "AWS HyperPod's figure for correctable GPU memory errors per day",
            1,
            1000000,
        ),
    ),
    skips=(skips.NONE_HERE,),
    evaluate=evaluate,
)
