"""Does a Neuron device correct so many memory errors that it is about to fail?"""

from __future__ import annotations

from typing import Iterator, List

from ...model import Finding, Reason, Threshold
from .. import skips
from ..context import Context
from .neuron_common import OF_NEURON, neuron_check, of_device

MANY = Reason("many", "many corrected memory errors", device="Neuron device")

COUNTERS = ("mem_ecc_corrected", "sram_ecc_corrected")


def evaluate(context: Context) -> Iterator[Finding]:
    """Corrected errors do no harm by themselves: a high count is a warning."""
    findings: List[Finding] = []
    most, seen = context.threshold("max_corrected"), 0
    for row in context.facts("neuron_monitor").get("devices", []):
        one = of_device(context, row["index"])
        for counter in COUNTERS:
            count = row.get(counter)
            if not isinstance(count, int):
                continue
            seen += 1
            one.measure(f"neuron_{counter}", count, "errors")
            if count > most:
                message = f"{count} corrected memory errors ({counter}), wanted at most {most:g}"
                findings.append(one.warn(MANY, message, count, most, "errors"))
    yield from findings
    if not seen:
        yield context.skip(skips.ONLY_ADVICE.because("neuron-monitor shows no count of corrected errors"))
    elif not findings:
        yield context.ok(f"at most {most:g} corrected memory errors on each device")


CHECK = neuron_check(
    id="neuron_ecc_corrected",
    order=960,
    title="Neuron corrected ECC errors",
    what="neuron-monitor's counts of corrected errors in the HBM and SRAM of each Neuron device.",
    why="Many corrected errors in one place come before an uncorrectable one.",
    remedy="Watch the count over days; replace the instance when it grows fast.",
    do="Watch the count over days.",
    out_of_service="No: they were corrected; many of them warn.",
    source="AWS Neuron: Neuron Monitor user guide (neuron_hw_counters)",
    needs=("neuron_monitor",),
    wants=("neuron_ls", "neuron_sysfs"),
    tags=("neuron", "memory"),
    thresholds=(
        Threshold(
            "max_corrected", 100, "errors", "most corrected errors on a device without a warning",
            "as for GPUs: AWS SageMaker HyperPod notes speak of over 100 a day; AWS names none for Neuron", 0,
        ),
    ),
    skips=(*OF_NEURON, skips.ONLY_ADVICE),
    evaluate=evaluate,
)  # fmt: skip
