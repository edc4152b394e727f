"""Is a memory bank out of spare rows?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List

from ...model import Facts, Finding, Reason, Remedy
from .. import skips
from ..context import Context
from .common import OF_GPU_FIELD, all_mig, each_gpu, gpu_check, is_number

EMPTY = Reason("empty", "the histogram counts no bank", device="GPU")
NONE_LEFT = Reason("none_left", "memory banks have no spare row left", Remedy.REPLACE, "GPU")
LOW = Reason("low", "memory banks are low on spare rows", device="GPU")

_BUCKETS = ("max", "high", "partial", "low", "none")


def _is_histogram(value: Any) -> bool:
    return isinstance(value, dict) and all(is_number(value.get(name)) for name in _BUCKETS)


def _judge(context: Context, gpu: Facts, banks: Dict[str, int]) -> Iterator[Finding]:
    empty, low = banks["none"], banks["low"]
    context.measure("remap_banks_without_spares", empty, "banks")
    if not sum(banks[name] for name in _BUCKETS):
        yield context.unknown(EMPTY, "the histogram counts no bank at all")
    elif empty:
        message = f"{empty} memory banks have no spare row left: plan the replacement"
        yield context.warn(NONE_LEFT, message, empty, 0, "banks")
    elif low:
        yield context.info(LOW, f"{low} memory banks are low on spare rows", low, 0, "banks")


def _good(histograms: List[Dict[str, int]]) -> str:
    full = min(banks["max"] for banks in histograms)
    return f"every memory bank has spare rows, at least {full} banks of each GPU all of theirs"


CHECK = gpu_check(
    id="row_remap_histogram",
    order=200,
    title="Spare rows per memory bank",
    what="The row remapper's histogram: how many memory banks have all, some or none of their spare rows.",
    why="The next bad row of a bank without spares cannot be remapped, and takes the job down for good.",
    remedy="Plan the replacement of the instance; do not start a long job on it.",
    out_of_service="No: a bank without spares still works; it warns before row_remap fails.",
    first="nvidia-smi -q -d ROW_REMAPPER",
    source="NVIDIA GPU memory error management, Row-remapping histogram",
    tags=("gpu", "memory"),
    skips=(*OF_GPU_FIELD, skips.MIG_ON, skips.RETIRES_PAGES, skips.DRIVER_SILENT),
    evaluate=each_gpu(
        "No spare row left is not yet a fault: the next bad row there will be one.",
        "remap.histogram",
        _is_histogram,
        "row remapping histogram",
        _judge,
        _good,
        absent=skips.DRIVER_SILENT.because("not printed by this driver"),
        na=lambda context: all_mig(context) or skips.RETIRES_PAGES.because("this product has no row remapping"),
        mig_hides=True,
    ),
)
