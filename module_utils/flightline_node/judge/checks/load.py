"""Is the node idle enough to be handed to a job?"""

from __future__ import annotations

from typing import Iterator, Optional

from ...model import Check, Facts, Finding, Reason, Threshold
from ..context import Context

CPUS_UNKNOWN = Reason("cpus_unknown", "the number of CPUs is not known")
BUSY = Reason("busy", "something runs already")


def evaluate(context: Context) -> Iterator[Finding]:
    """The one-minute load average per CPU; a busy node is not a broken one, so this never blocks."""
    load = context.facts("loadavg")["load1"]
    context.measure("load1", load, "tasks")
    processors = cpus(context.optional("cpuinfo") or {}) or context.expected.vcpus
    if not processors:
        yield context.info(CPUS_UNKNOWN, f"load {load:g}, number of CPUs not known", measured=load, unit="tasks")
        return
    share, most = round(load / processors, 3), context.threshold("max_per_cpu")
    rest = {"measured": share, "expected": most, "unit": "tasks per CPU"}
    if share > most:
        yield context.warn(BUSY, f"load {load:g} on {processors} CPUs: something runs here already", **rest)
    else:
        yield context.ok(f"load {load:g} on {processors} CPUs", **rest)


def cpus(cpuinfo: Facts) -> Optional[int]:
    """CPUs that run tasks, as lscpu counts them."""
    return cpuinfo.get("online") or cpuinfo.get("cpus")


CHECK = Check(
    id="load",
    order=440,
    title="Load average",
    what="The one-minute load average, per CPU.",
    why="Processes left over from another job slow the new one; tasks stuck on a dead mount raise the load as well.",
    remedy="Find what runs, or hangs in state D (ps -eo state,pid,comm), and end it.",
    out_of_service="No: it says that something runs, not that something is broken.",
    source="proc_loadavg(5): runnable and uninterruptible tasks; above one per CPU tasks wait",
    needs=("loadavg",),
    wants=("cpuinfo",),
    tags=("host", "compute"),
    thresholds=(
        Threshold(
            "max_per_cpu",
            1.0,
            "tasks per CPU",
            "most load, per CPU",
            "above one runnable task per CPU tasks wait for each other",
            0,
            1000,
        ),
    ),
    informs=True,
    evaluate=evaluate,
)
