"""Could every bad memory row be remapped, and is no remapping waiting for a reset?"""

from __future__ import annotations

from typing import Any, Dict, Iterator

from ...model import Facts, Finding, Reason, Remedy, Threshold
from .. import reasons, skips
from ..context import Context
from .common import OF_GPU_FIELD, all_mig, each_gpu, gpu_check, is_flag, is_number

FAILED = Reason("failed", "a bad memory row could not be remapped", Remedy.REPLACE, "GPU")
USED_UP = Reason("used_up", "the spare rows are used up", Remedy.REPLACE, "GPU")
PENDING = Reason("pending", "a row remapping waits for a reset", Remedy.RESET_GPU, "GPU")
SOME = Reason("some", "rows were remapped after uncorrectable errors", device="GPU")


def _is_remap(value: Any) -> bool:
    return isinstance(value, dict)


def _judge(context: Context, gpu: Facts, remap: Dict[str, Any]) -> Iterator[Finding]:
    rows, most = remap.get("uncorrected"), context.threshold("max_uncorrected_rows")
    context.measure("remapped_rows_uncorrected", rows, "rows")
    context.measure("remapped_rows_corrected", remap.get("corrected"), "rows")
    unread = [name for name in ("failure", "pending") if not is_flag(remap.get(name))]
    if remap.get("failure") is True:
        yield context.fail(FAILED, "a bad memory row could not be remapped", True, False)
    elif is_number(rows) and rows >= most:
        message = f"{rows} rows remapped after uncorrectable errors: the spare rows are used up"
        yield context.fail(USED_UP, message, rows, most, "rows")
    elif remap.get("pending") is True:
        yield context.fail(PENDING, "a row remapping waits for a reset", True, False)
    elif unread or ("uncorrected" in remap and not is_number(rows)):
        shown = ", ".join(f"{name}: {remap.get(name)}" for name in [*unread, "uncorrected"])
        yield context.unknown(reasons.VALUE_UNREAD, f"row remapping could not be read ({shown})")
    elif is_number(rows) and rows > 0:
        yield context.info(SOME, f"{rows} rows remapped after uncorrectable errors", rows, most, "rows")


CHECK = gpu_check(
    id="row_remap",
    order=190,
    title="Row remapping",
    what="Failed and pending row remappings of each GPU, and the number of rows remapped.",
    why="A failed remapping leaves a bad row in use: the same uncorrectable error returns job after job.",
    remedy="Pending: drain the node and reset the GPU (or reboot), then check again. "
    "Failed, or spare rows used up: replace the instance.",
    do="Pending: drain the node and reset the GPU (or reboot), then check again.",
    out_of_service="Yes when a remapping failed or waits for a reset; rows in use are information.",
    first="nvidia-smi -q -d ROW_REMAPPER",
    source="NVIDIA GPU memory error management, Row Remapping and RMA criteria",
    tags=("gpu", "memory"),
    thresholds=(
        Threshold(
            "max_uncorrected_rows",
            512,
            "rows",
            "rows remapped after uncorrectable errors from which a GPU is replaced",
            "NVIDIA row remapping: up to 512 rows per GPU; OCI replaces GPUs above it",
            1,
        ),
    ),
    skips=(*OF_GPU_FIELD, skips.MIG_ON, skips.RETIRES_PAGES),
    evaluate=each_gpu(
        "A failure outranks a used-up supply, which outranks a pending remapping.",
        "remap",
        _is_remap,
        "row remapping state",
        _judge,
        lambda _remaps: "no row remapping failed or pending",
        absent=skips.RETIRES_PAGES.because("not printed by this driver"),
        na=lambda context: (
            all_mig(context)
            or skips.RETIRES_PAGES.because("this product retires pages instead (Volta, Turing), or has no ECC memory")
        ),
        mig_hides=True,
    ),
)
