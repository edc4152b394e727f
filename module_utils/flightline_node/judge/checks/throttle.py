"""Does the hardware hold a GPU's clock down?"""

from __future__ import annotations

from typing import Iterator, List

from ...model import Facts, Finding, Reason, Remedy
from .. import skips
from ..context import Context
from .common import OF_GPU_FIELD, each_gpu, gpu_check, is_items, one_of_each

HELD_DOWN = Reason("held_down", "the hardware holds a GPU's clock down", Remedy.REPLACE, "GPU")
COOLING = Reason("cooling", "the driver lowered a GPU's clock to stay cool", device="GPU")

_HARDWARE = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
_WATCH = ("sw_thermal_slowdown",)


def _judge(context: Context, gpu: Facts, reasons: List[str]) -> Iterator[Finding]:
    bad = [reason for reason in reasons if reason in _HARDWARE]
    watch = [reason for reason in reasons if reason in _WATCH]
    shown = ", ".join(bad + watch)
    if bad:
        yield context.fail(HELD_DOWN, f"clock held down by the hardware: {shown}", reasons, [])
    elif watch:
        yield context.warn(COOLING, f"clock lowered by the driver to stay cool: {shown}", reasons, [])


def _good(found: List[List[str]]) -> str:
    active = one_of_each(reason for reasons in found for reason in reasons)
    return f"no hardware slowdown (active: {active or 'nothing'})"


CHECK = gpu_check(
    id="throttle",
    order=250,
    title="Clock slowdown",
    what="The active clock event (throttle) reasons of each GPU.",
    why="A hardware slowdown halves the clock or worse: one such GPU makes thousands wait.",
    remedy="Let the node idle and check again. A lasting slowdown is a cooling or power fault of the host: "
    "replace the instance.",
    do="Let the node idle and check again.",
    out_of_service="Yes when the hardware holds the clock down: it sets the job's pace. The driver's own warns.",
    first="nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER",
    source="NVML clocks event reasons; Azure healthagent default mask 0xE8",
    tags=("gpu", "thermal"),
    skips=(*OF_GPU_FIELD, skips.NOT_PRINTED),
    evaluate=each_gpu(
        "Hardware reasons fail, software thermal warns; idle, clock settings and the power cap are normal.",
        "throttle_active",
        is_items,
        "clock event reasons",
        _judge,
        _good,
        absent=skips.NOT_PRINTED.because("not printed by this driver"),
    ),
)
