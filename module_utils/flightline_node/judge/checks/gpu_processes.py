"""Is anything left running on the GPUs, or is their memory held by nothing?"""

from __future__ import annotations

from typing import Any, Iterator, List

from ...model import Facts, Finding, Reason, Remedy, Threshold
from .. import reasons, skips
from ..context import Context
from .common import OF_GPU_FIELD, each_gpu, gpu_check, is_broken, is_items, is_number

EXPECTED_PROCESS = Reason("expected_process", "a process that belongs to the system uses a GPU", device="GPU")
PROCESS = Reason("process", "a process uses a GPU", Remedy.RESTART_APP, "GPU")
HIDDEN_MEMORY = Reason("hidden_memory", "memory is in use and no process is to be seen", Remedy.RESET_GPU, "GPU")

_SERVICES = ("nvidia-cuda-mps-server",)


def stray(processes: List[Any]) -> List[Facts]:
    """Compute processes (type C, C+G, M+C); one whose type is not printed counts as well."""
    return [
        process
        for process in processes
        if isinstance(process, dict)
        and "C" in str(process.get("type") or "C")
        and not str(process.get("name")).endswith(_SERVICES)
    ]


def _judge(context: Context, gpu: Facts, processes: List[Any]) -> Iterator[Finding]:
    used, beside = gpu.get("memory_used_mib"), context.level == "quick"
    most = context.threshold("max_idle_mib")
    left = stray(processes)
    if left:
        shown = [f"pid {p.get('pid')} {p.get('name')} {p.get('used_mib')} MiB" for p in left]
        message = f"{len(left)} compute processes ({shown[0]})"
        rest = (len(left), 0, "processes")
        if beside:
            yield context.info(EXPECTED_PROCESS, message, *rest, evidence=shown)
        else:
            yield context.fail(PROCESS, message, *rest, evidence=shown)
    elif is_broken(used):
        yield context.unknown(reasons.VALUE_UNREAD, f"memory in use could not be read: {used}")
    elif is_number(used) and used > most:
        message = f"{used:g} MiB in use and no process to be seen"
        give = context.info if beside else context.warn
        yield give(HIDDEN_MEMORY, message, used, most, "MiB")


CHECK = gpu_check(
    id="gpu_processes",
    order=310,
    title="Processes on the GPUs",
    what="Compute processes on each GPU, and GPU memory in use without one. Reported at level quick; "
    "from level standard on, a process fails the node.",
    why="A process left by the last job holds memory and cycles: the next job runs out of memory or runs slow, "
    "and so do this preflight's own tests.",
    remedy="Stop the process. Memory without a process: look for it in containers, then reset the GPU.",
    out_of_service="Yes from level standard, where someone's program would spoil tests and job; quick only tells.",
    first="nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv",
    source="DCGM level 1 software test (graphics and compute processes)",
    tags=("gpu", "software"),
    thresholds=(
        Threshold(
            "max_idle_mib",
            1024,
            "MiB",
            "most GPU memory in use without a process",
            "site choice: above what a driver before 510 counts as used for its own reserve",
            0,
        ),
    ),
    skips=(*OF_GPU_FIELD, skips.NOT_PRINTED),
    evaluate=each_gpu(
        "`quick` may run beside a job, so that processes are only reported; later levels need the GPUs alone.",
        "processes",
        is_items,
        "process list",
        _judge,
        lambda _lists: "no compute process on the GPUs",
        absent=skips.NOT_PRINTED.because("not printed"),
    ),
)
