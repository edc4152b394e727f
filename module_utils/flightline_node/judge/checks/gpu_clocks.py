"""Can every GPU reach the clock of its twins, and does it under load?"""

from __future__ import annotations

from typing import Iterator

from ...model import Facts, Finding, Reason, Remedy, Threshold
from .. import skips
from ..context import Context
from .common import OF_GPU_FIELD, best_of_twins, each_gpu, field_of, gpu_check, is_number, spread, under_load, untyped

LOWER_MAXIMUM = Reason("lower_maximum", "the maximum clock is below the other GPUs'", device="GPU")
SLOW_WITHOUT_REASON = Reason(
    "slow_without_reason", "the clock is low under load without a reason", Remedy.RESET_GPU, "GPU"
)


def _judge(context: Context, gpu: Facts, maximum: float) -> Iterator[Finding]:
    context.measure("gpu_max_sm_clock_mhz", maximum, "MHz")
    for name in ("sm_mhz", "memory_mhz"):
        clock, best = field_of(gpu, f"clocks_max.{name}"), best_of_twins(context, gpu, f"clocks_max.{name}")
        if is_number(clock) and best and clock < best:
            message = f"maximum {name[:-4]} clock {clock:g} MHz, other GPUs of the node {best:g} MHz"
            yield context.warn(LOWER_MAXIMUM, message, clock, best, "MHz")
    now, least = field_of(gpu, "clocks.sm_mhz"), maximum * context.threshold("min_loaded_percent") / 100
    # Idle GPUs and GPUs that name a reason are slow for good cause.
    if under_load(gpu) and gpu.get("throttle_active") == [] and is_number(now) and now < least:
        message = f"under load at {now:g} MHz of {maximum:g} MHz without a reason"
        yield context.warn(SLOW_WITHOUT_REASON, message, now, maximum, "MHz")


CHECK = gpu_check(
    id="gpu_clocks",
    order=260,
    title="GPU clocks",
    what="Maximum SM and memory clock, equal within the node; the SM clock of a GPU under load.",
    why="A GPU with a lower maximum, or stuck at a low clock, is the straggler of the job.",
    remedy="Stuck: reset the GPU. A lower maximum: look for locked clocks (nvidia-smi -rgc), then another VBIOS.",
    do="A lower maximum: look for locked clocks (nvidia-smi -rgc), then another VBIOS.",
    out_of_service="No by itself: lower clocks warn; gpu_load measures what they cost.",
    first="nvidia-smi -q -d CLOCK,PERFORMANCE",
    source="nvidia-smi manual, Clocks and Max Clocks",
    tags=("gpu", "thermal"),
    thresholds=(
        Threshold(
            "min_loaded_percent",
            50,
            "%",
            "least SM clock under load, of the maximum",
            "site choice: a clock under half without a reason is a stuck one",
            0,
            100,
        ),
    ),
    skips=(*OF_GPU_FIELD, skips.NOT_PRINTED, skips.UNTYPED),
    evaluate=each_gpu(
        "Maximum clocks are compared within the node; the current clock only of a GPU under load.",
        "clocks_max.sm_mhz",
        is_number,
        "maximum clock",
        _judge,
        lambda clocks: f"maximum SM clock {spread(clocks)} MHz",
        absent=skips.NOT_PRINTED.because("not printed by this driver"),
        na=untyped,
    ),
)
