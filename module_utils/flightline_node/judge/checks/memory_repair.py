"""Is a repair of GPU memory waiting for a reset, or impossible?"""

from __future__ import annotations

from typing import Iterator, List

from ...model import Finding, Reason, Remedy
from .. import reasons, skips
from ..context import Context
from .common import NO_GPU, OF_GPU_FIELD, gpu_check, gpus, is_flag, no_value, of_gpu, read, unreadable

_FLAGS = (
    ("unrepairable_memory", Remedy.REPLACE, "has memory that cannot be repaired"),
    ("channel_repair_pending", Remedy.RESET_GPU, "a memory channel repair waits for a reset"),
    ("tpc_repair_pending", Remedy.RESET_GPU, "a TPC repair waits for a reset"),
    ("bank_remap.pending", Remedy.RESET_GPU, "a memory bank remapping waits for a reset"),
)

FLAGGED = Reason("flagged", "a GPU's memory waits for a repair", device="GPU")


def evaluate(context: Context) -> Iterator[Finding]:
    """Flags of driver 580 to 615 and later; a driver prints all, some or none of them."""
    if not list(gpus(context)):
        yield context.unknown(reasons.NO_GPU_LISTED, NO_GPU)
        return
    findings: List[Finding] = []
    readings = [read(context, path, is_flag) for path, _, _ in _FLAGS]
    for (path, remedy, meaning), reading in zip(_FLAGS, readings):
        findings += unreadable(context, reading, path)
        for gpu, flag in reading.values:
            if flag:
                one = of_gpu(context, gpu)
                findings.append(one.fail(FLAGGED.of(path), meaning, True, False, remedy=remedy))
    yield from findings
    seen = [path for (path, _, _), reading in zip(_FLAGS, readings) if reading.values]
    if not findings and seen:
        yield context.ok(f"nothing to repair ({', '.join(seen)})")
    elif not findings:
        yield no_value(
            context,
            readings[0],
            "repair flags",
            skips.DRIVER_SILENT.because("not printed by this driver (before 580)"),
            skips.DRIVER_SILENT.because("not kept for this product"),
        )


CHECK = gpu_check(
    id="memory_repair",
    order=230,
    title="GPU memory repair",
    what="Pending channel, TPC and memory bank repairs, and memory marked unrepairable, of each GPU.",
    why="Until the repair is done the bad part stays in use; unrepairable memory fails again in every job.",
    remedy="Pending: drain the node and reset the GPU (or reboot). Unrepairable: replace the instance.",
    do="Pending: drain the node and reset the GPU (or reboot).",
    out_of_service="Yes: the driver itself says that a repair is pending or impossible.",
    first="nvidia-smi -q | grep -i repair",
    source="nvidia-smi manual (Channel Repair Pending, TPC Repair Pending); NVML nvmlDeviceGetRepairStatus, "
    "nvmlDeviceGetBankRemapperStatus (615)",
    tags=("gpu", "memory"),
    skips=(*OF_GPU_FIELD, skips.DRIVER_SILENT),
    evaluate=evaluate,
)
