"""Is the power limit of every GPU at its default?"""

from __future__ import annotations

from typing import Iterator

from ...model import Facts, Finding, Reason, Remedy, Threshold
from .. import reasons, skips
from ..context import Context
from .common import OF_GPU_FIELD, each_gpu, field_of, gpu_check, is_broken, is_number, spread, untyped

NO_DEFAULT = Reason("no_default", "no default limit to compare with", Remedy.NONE, "GPU")
LOWERED = Reason("lowered", "the power limit is below its default", Remedy.FIX_CONFIG, "GPU")

_ROUNDING_W = 1.0


def _judge(context: Context, gpu: Facts, limit: float) -> Iterator[Finding]:
    default, draw = field_of(gpu, "power.default_limit_w"), field_of(gpu, "power.draw_w")
    context.measure("gpu_power_limit_w", limit, "W")
    context.measure("gpu_power_draw_w", draw, "W")
    for name, value in (("default power limit", default), ("power draw", draw)):
        if is_broken(value):
            yield context.unknown(reasons.VALUE_UNREAD, f"{name} could not be read: {value}")
    rest = (limit, default, "W")
    if default is None:
        yield context.warn(NO_DEFAULT, f"limit {limit:g} W, and no default limit to compare with", *rest)
    elif is_number(default) and limit < default - _ROUNDING_W:
        message = f"power limit {limit:g} W, default {default:g} W"
        if limit < default * context.threshold("min_percent") / 100:
            yield context.fail(LOWERED, message, *rest)
        else:
            yield context.warn(LOWERED, message, *rest)


CHECK = gpu_check(
    id="power_limit",
    order=270,
    title="Power limit",
    what="The power limit in force for each GPU, against the board's default; the power draw must be readable.",
    why="A GPU with a lowered limit runs at a lower clock under load, and all ranks wait for it.",
    remedy="Set the default again (nvidia-smi -pl WATTS) and find what lowered it; a reboot restores it.",
    do="Set the default again (nvidia-smi -pl WATTS) and find what lowered it.",
    out_of_service="Yes far below the board's default, as it costs speed; a little below warns.",
    first="nvidia-smi -q -d POWER",
    source="nvidia-smi manual, Power Readings; DCGM (ENFORCED_POWER_LIMIT, severity CONFIG)",
    tags=("gpu", "thermal"),
    thresholds=(
        Threshold(
            "min_percent",
            90,
            "%",
            "least power limit, of the default; between it and the default is a warning",
            "site choice: a tenth less power costs little of the clock, more makes a straggler",
            1,
            100,
        ),
    ),
    skips=(*OF_GPU_FIELD, skips.NOT_PRINTED, skips.UNTYPED),
    evaluate=each_gpu(
        "A limit below the default warns, one far below fails; power draw must be readable.",
        "power.limit_w",
        is_number,
        "power limit",
        _judge,
        lambda limits: f"power limit {spread(limits)} W, not below the default",
        absent=skips.NOT_PRINTED.because("not printed"),
        na=untyped,
    ),
)
