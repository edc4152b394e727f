"""Has a GPU (Volta, Turing) retired too many memory pages, or has one waiting for a reboot?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List

from ...model import Facts, Finding, Reason, Remedy, Threshold
from .. import reasons, skips
from ..context import Context
from .common import OF_GPU_FIELD, gpu_check, gpus, is_flag, is_number, judge_gpus

TOO_MANY = Reason("too_many", "as many pages are retired as NVIDIA replaces a GPU for", Remedy.REPLACE, "GPU")
PENDING = Reason("pending", "a page retirement waits for a reset", Remedy.RESET_GPU, "GPU")
SOME = Reason("some", "some pages are retired", device="GPU")

_COUNTS = ("single_bit", "double_bit")


def _is_pages(value: Any) -> bool:
    return isinstance(value, dict)


def _judge(context: Context, gpu: Facts, pages: Dict[str, Any]) -> Iterator[Finding]:
    most = context.threshold("max_pages")
    total = sum(pages[name] for name in _COUNTS if is_number(pages.get(name)))
    context.measure("retired_pages", total, "pages")
    if total >= most:
        message = f"{total} memory pages retired, NVIDIA replaces a GPU from {most:g}"
        yield context.fail(TOO_MANY, message, total, most, "pages")
    elif pages.get("pending") is True:
        yield context.fail(PENDING, "a page retirement waits for a reset", True, False)
    elif not (is_flag(pages.get("pending")) and all(is_number(pages[name]) for name in _COUNTS if name in pages)):
        yield context.unknown(reasons.VALUE_UNREAD, f"retired pages could not be read: {pages}")
    elif total:
        yield context.info(SOME, f"{total} memory pages retired", total, most, "pages")


def _kept(found: List[Any]) -> bool:
    """Ampere and later print the block with N/A in every line: they remap rows instead."""
    return any(value is not None for pages in found if isinstance(pages, dict) for value in pages.values())


def evaluate(context: Context) -> Iterator[Finding]:
    """Pages are retired on GPUs before Ampere only."""
    found = [gpu.get("retired_pages") for gpu in gpus(context)]
    if found and all(isinstance(pages, dict) for pages in found) and not _kept(found):
        yield context.skip(skips.REMAPS_ROWS.because("no retired pages: this product remaps rows instead"))
        return
    yield from judge_gpus(
        context,
        "retired_pages",
        _is_pages,
        "retired pages",
        _judge,
        lambda _pages: "no page retirement pending, fewer retired pages than NVIDIA's limit",
        absent=skips.REMAPS_ROWS.because("not printed by this driver"),
        na=skips.REMAPS_ROWS.because("this product remaps rows instead"),
    )


CHECK = gpu_check(
    id="retired_pages",
    order=210,
    title="Retired memory pages",
    what="The memory pages retired by GPUs before Ampere, and retirements waiting for a reset.",
    why="Until the reset the bad page stays in use; a GPU near the limit soon has no page left to retire.",
    remedy="Pending: drain the node and reset the GPU (or reboot). At the limit: replace the instance.",
    do="Pending: drain the node and reset the GPU (or reboot).",
    out_of_service="Yes when a retirement is pending or the limit for a return is reached.",
    first="nvidia-smi -q -d PAGE_RETIREMENT",
    source="NVIDIA Dynamic Page Retirement guide",
    tags=("gpu", "memory"),
    thresholds=(
        Threshold(
            "max_pages",
            60,
            "pages",
            "retired pages from which a GPU is replaced",
            "NVIDIA Dynamic Page Retirement: RMA at 60 or more retired pages",
            1,
            64,
        ),
    ),
    skips=(*OF_GPU_FIELD, skips.REMAPS_ROWS),
    evaluate=evaluate,
)
