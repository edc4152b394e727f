"""Does the node have the memory of its instance type, and enough of it free?"""

from __future__ import annotations

from typing import Iterator

from ...model import Check, Finding, Reason, Remedy, Threshold
from .. import skips
from ..context import Context

TOO_LITTLE = Reason("too_little", "memory of the type is missing", Remedy.REPLACE)
POISONED = Reason("poisoned", "memory was taken out of use for errors")
IN_USE = Reason("in_use", "little memory is available")

KIB_PER_MIB = 1024


def evaluate(context: Context) -> Iterator[Finding]:
    """Total against the type (the kernel keeps a few percent), then the share available."""
    facts = context.facts("meminfo")
    total_mib = facts["total_kib"] // KIB_PER_MIB
    context.measure("memory_total_mib", total_mib, "MiB")
    wanted, floor = context.expected.memory_mib, context.threshold("min_total_percent")
    if wanted and total_mib * 100 < wanted * floor:
        yield context.fail(
            TOO_LITTLE,
            f"{total_mib} MiB of memory, wanted at least {floor:g}% of {wanted} MiB: some of it is missing",
            measured=total_mib,
            expected=wanted,
            unit="MiB",
        )
    elif wanted:
        yield context.ok(f"{total_mib} MiB of memory", measured=total_mib, expected=wanted, unit="MiB")
    poisoned_kib = facts.get("hardware_corrupted_kib", 0)
    if poisoned_kib:
        message = f"{poisoned_kib} KiB of memory taken out of use for memory errors, wanted none"
        rest = {"measured": poisoned_kib, "expected": 0, "unit": "KiB"}
        yield context.warn(POISONED, message, **rest)
    if "available_kib" not in facts:
        yield context.skip(skips.NOT_PRINTED.because("MemAvailable not printed: free memory not judged"))
        return
    percent = round(100.0 * facts["available_kib"] / max(facts["total_kib"], 1), 1)
    context.measure("memory_available_percent", percent, "%")
    least = context.threshold("min_available_percent")
    rest = {"measured": percent, "expected": least, "unit": "%"}
    if percent < least:
        yield context.warn(
            IN_USE, f"{percent}% of memory available, wanted {least:g}%: something is left running", **rest
        )
    else:
        yield context.ok(f"{percent}% of memory available", **rest)


CHECK = Check(
    id="memory",
    order=460,
    title="Memory size and availability",
    what="MemTotal against the instance type, MemAvailable against a share of it, and pages lost to memory errors.",
    why="Data loaders and pinned buffers fill host memory; a node with less is killed first and takes the job along.",
    remedy="Too small: replace the instance. Little available: find what holds it (ps, smem) and stop it.",
    do="Little available: find what holds it (ps, smem) and stop it.",
    out_of_service="Yes when memory is missing or marked bad; little that is free warns.",
    source="AWS instance type tables; Linux Documentation/filesystems/proc.rst",
    needs=("meminfo",),
    tags=("host",),
    thresholds=(
        Threshold(
            "min_total_percent",
            90,
            "%",
            "least MemTotal, of the instance type's memory",
            "firmware and kernel reserve a few percent of the EC2 figure",
            1,
            100,
        ),
        Threshold(
            "min_available_percent",
            50,
            "%",
            "least MemAvailable, of MemTotal",
            "an idle training node uses under a tenth of its memory",
            0,
            100,
        ),
    ),
    skips=(skips.NOT_PRINTED,),
    evaluate=evaluate,
)
