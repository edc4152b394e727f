"""Has a GPU had memory errors that ECC could not correct, since the driver was loaded?"""

from __future__ import annotations

from typing import Iterator, List

from ...model import Facts, Finding, Reason, Remedy
from .. import reasons, skips
from ..context import Context
from .common import (
    OF_GPU_FIELD,
    all_mig,
    best_of_twins,
    each_gpu,
    ecc_off,
    field_of,
    gpu_check,
    is_number,
    mig_on,
    untyped,
)

SINCE_LOAD = Reason("since_load", "uncorrectable memory errors since the driver was loaded", Remedy.RESET_GPU, "GPU")
IN_ITS_LIFE = Reason("in_its_life", "uncorrectable memory errors in the GPU's life, none of late", device="GPU")

_COUNTERS = ("dram_uncorrectable", "sram_uncorrectable", "sram_uncorrectable_parity", "sram_uncorrectable_secded")


def _parts(gpu: Facts, age: str) -> List[str]:
    counters = field_of(gpu, f"ecc.{age}")
    if not isinstance(counters, dict):
        return []
    return [f"{age} {name}: {n}" for name, n in counters.items() if "uncorr" in name and is_number(n) and n > 0]


def _only_here(context: Context, gpu: Facts, path: str) -> bool:
    """Is a counter missing on this GPU that its twins have? A sum over the others would hide it."""
    return field_of(gpu, path) is None and best_of_twins(context, gpu, path) is not None


def _judge(context: Context, gpu: Facts, volatile: float) -> Iterator[Finding]:
    context.measure("ecc_uncorrected_volatile", volatile, "errors")
    history = gpu.get("ecc_uncorrected_aggregate")
    context.measure("ecc_uncorrected_aggregate", history, "errors")
    lacking = [name for name in _COUNTERS if not mig_on(gpu) and _only_here(context, gpu, f"ecc.volatile.{name}")]
    if volatile <= 0 and lacking:
        message = f"no {', '.join(lacking)} count, where other GPUs of the same model have one"
        yield context.unknown(reasons.VALUE_LACKING, message)
    elif volatile > 0:
        yield context.fail(
            SINCE_LOAD,
            f"{volatile:g} uncorrectable memory errors since the driver was loaded",
            volatile,
            0,
            "errors",
            evidence=_parts(gpu, "volatile"),
        )
    elif is_number(history) and history > 0:
        yield context.info(
            IN_ITS_LIFE,
            f"{history:g} uncorrectable memory errors in its life, none since the driver was loaded",
            history,
            None,
            "errors",
            evidence=_parts(gpu, "aggregate"),
        )


CHECK = gpu_check(
    id="ecc_uncorrected",
    order=160,
    title="Uncorrectable ECC errors",
    what="The volatile count of uncorrectable DRAM and SRAM errors of each GPU; the aggregate count for information.",
    why="An uncorrectable error kills the process that meets it, and the page stays unusable until a reset.",
    remedy="Drain the node, reset the GPU, then look at row_remap and for Xid 48, 63, 64, 94, 95. "
    "If it comes back, replace the instance.",
    out_of_service="Yes: the driver has lost data since it was loaded; a reset clears it.",
    first="nvidia-smi -q -d ECC,ROW_REMAPPER",
    source="NVIDIA GPU memory error management; NVIDIA GPU debug guidelines",
    tags=("gpu", "memory"),
    skips=(*OF_GPU_FIELD, skips.ECC_OFF, skips.MIG_ON, skips.UNTYPED),
    evaluate=each_gpu(
        "Volatile counts must be zero; aggregate counts are history, which row remapping has dealt with.",
        "ecc_uncorrected_volatile",
        is_number,
        "count of uncorrectable errors",
        _judge,
        lambda _counts: "no uncorrectable memory error since the driver was loaded",
        na=lambda context: ecc_off(context) or all_mig(context) or untyped(context),
        mig_hides=True,
    ),
)
