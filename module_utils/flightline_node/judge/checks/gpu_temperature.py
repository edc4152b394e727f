"""Is every GPU, and its memory, well below the temperature at which it slows down?"""

from __future__ import annotations

from typing import Iterator, Optional

from ...model import Facts, Finding, Reason, Remedy, Threshold
from .. import reasons
from ..context import Context
from .common import OF_GPU_FIELD, each_gpu, gpu_check, is_broken, is_number, spread

TOO_HOT = Reason("too_hot", "a GPU is near its limit of temperature", Remedy.REPLACE, "GPU")
NOT_PLAUSIBLE = Reason("not_plausible", "a temperature is not plausible", device="GPU")

_PLAUSIBLE_C = (1, 130)


def _gpu_headroom(context: Context, gpu: Facts, celsius: float) -> float:
    """Degrees left: as printed (T.Limit, Hopper and later), else to the slowdown temperature."""
    left = gpu.get("temperature_tlimit_c")
    if is_number(left):
        return float(left)
    limit = gpu.get("temperature_slowdown_c")
    return float(limit if is_number(limit) else context.threshold("slowdown_c")) - celsius


def _memory_headroom(gpu: Facts) -> Optional[float]:
    celsius, limit = gpu.get("temperature_memory_c"), gpu.get("temperature_memory_max_operating_c")
    return float(limit - celsius) if is_number(celsius) and is_number(limit) else None


def _near(context: Context, gpu: Facts, what: str, celsius: float, left: float) -> Iterator[Finding]:
    spare = context.threshold("warn_headroom_c")
    rest = (celsius, f"below {celsius + left - spare:g}", "C")
    message = f"{what} at {celsius:g} C, {left:g} C below its limit, wanted more than {spare:g} C below"
    if left <= context.threshold("fail_headroom_c"):
        yield context.fail(TOO_HOT, message, *rest)
    elif left <= spare:
        yield context.warn(TOO_HOT, message, *rest, remedy=Remedy.INVESTIGATE)


def _judge(context: Context, gpu: Facts, celsius: float) -> Iterator[Finding]:
    context.measure("gpu_temperature_c", celsius, "C")
    context.measure("gpu_memory_temperature_c", gpu.get("temperature_memory_c"), "C")
    for name in ("temperature_tlimit_c", "temperature_memory_c"):
        if is_broken(gpu.get(name)):
            yield context.unknown(reasons.VALUE_UNREAD, f"{name} could not be read: {gpu[name]}")
    if not _PLAUSIBLE_C[0] <= celsius <= _PLAUSIBLE_C[1]:
        yield context.unknown(NOT_PLAUSIBLE, f"{celsius:g} C is no plausible temperature", celsius)
        return
    yield from _near(context, gpu, "GPU", celsius, _gpu_headroom(context, gpu, celsius))
    left = _memory_headroom(gpu)
    if left is not None:
        yield from _near(context, gpu, "memory", gpu["temperature_memory_c"], left)


CHECK = gpu_check(
    id="gpu_temperature",
    order=240,
    title="GPU temperature",
    what="GPU and memory temperature, against the slowdown limit (or the degrees left) that the GPU prints.",
    why="A GPU at its limit lowers its clock and sets the pace of the whole job; hot memory has more bit errors.",
    remedy="Let the node idle and check again. A GPU that stays hot has a cooling fault: replace the instance.",
    do="Let the node idle and check again.",
    out_of_service="Yes at the limit where the GPU slows down; near it warns.",
    first="nvidia-smi -q -d TEMPERATURE",
    source="nvidia-smi manual, Temperature: T.Limit counts down to 0 at the maximum operating temperature",
    tags=("gpu", "thermal"),
    thresholds=(
        Threshold(
            "warn_headroom_c",
            5,
            "C",
            "degrees below the limit from which to warn",
            "site choice: early enough to act before the clock is lowered",
            0,
            50,
        ),
        Threshold(
            "fail_headroom_c",
            0,
            "C",
            "degrees below the limit from which to fail",
            "nvidia-smi manual: at 0 the clocks are lowered",
            -10,
            50,
        ),
        Threshold(
            "slowdown_c",
            89,
            "C",
            "slowdown temperature of a GPU that prints none",
            "lowest of the data-centre parts (A100 80GB: 89 C, T4: 93 C, A10G: 95 C)",
            50,
            110,
        ),
    ),
    skips=OF_GPU_FIELD,
    evaluate=each_gpu(
        "Compare with the limits that the GPU itself prints, in either style.",
        "temperature_c",
        is_number,
        "temperature",
        _judge,
        lambda values: f"GPUs at {spread(values)} C",
    ),
)
