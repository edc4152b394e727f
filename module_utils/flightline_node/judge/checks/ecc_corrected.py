"""Does a GPU correct so many memory errors that it is about to fail?"""

from __future__ import annotations

from typing import Iterator

from ...model import Facts, Finding, Reason, Threshold
from .. import skips
from ..context import Context
from .common import OF_GPU_FIELD, all_mig, each_gpu, ecc_off, gpu_check, is_number, spread, untyped

MANY = Reason("many", "many corrected memory errors", device="GPU")


def _judge(context: Context, gpu: Facts, count: float) -> Iterator[Finding]:
    context.measure("ecc_corrected_volatile", count, "errors")
    most = context.threshold("max_corrected")
    if count > most:
        message = f"{count:g} corrected memory errors since the driver was loaded, wanted at most {most:g}"
        yield context.warn(MANY, message, count, most, "errors")


CHECK = gpu_check(
    id="ecc_corrected",
    order=170,
    title="Corrected ECC errors",
    what="The volatile count of corrected memory errors of each GPU.",
    why="Many corrected errors in one place come before an uncorrectable one.",
    remedy="Watch the rate over days; replace the instance when it grows by more than a hundred a day.",
    do="Watch the rate over days.",
    out_of_service="No: they were corrected; many of them warn.",
    first="nvidia-smi -q -d ECC",
    source="AWS SageMaker HyperPod notes (over 100 correctable errors a day: replace)",
    tags=("gpu", "memory"),
    thresholds=(
        Threshold(
            "max_corrected",
            100,
            "errors",
            "most corrected errors since the driver was loaded",
            "AWS SageMaker HyperPod notes: over 100 correctable errors a day",
            0,
        ),
    ),
    skips=(*OF_GPU_FIELD, skips.NOT_PRINTED, skips.ECC_OFF, skips.MIG_ON, skips.UNTYPED),
    evaluate=each_gpu(
        "Corrected errors do no harm by themselves: a high count is a warning.",
        "ecc_corrected_volatile",
        is_number,
        "count of corrected errors",
        _judge,
        lambda counts: f"{spread(counts)} corrected memory errors per GPU",
        absent=skips.NOT_PRINTED.because("not printed"),
        na=lambda context: ecc_off(context) or all_mig(context) or untyped(context),
        mig_hides=True,
    ),
)
