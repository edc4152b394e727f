"""Has a GPU's SRAM had more uncorrectable errors than NVIDIA accepts?"""

from __future__ import annotations

from typing import Iterator

from ...model import Facts, Finding, Reason, Remedy
from .. import skips
from ..context import Context
from .common import OF_GPU_FIELD, each_gpu, gpu_check, is_flag

EXCEEDED = Reason("exceeded", "the GPU's uncorrectable SRAM errors exceed NVIDIA's threshold", Remedy.REPLACE, "GPU")


def _judge(context: Context, gpu: Facts, exceeded: bool) -> Iterator[Finding]:
    if exceeded:
        message = "more uncorrectable SRAM errors in its life than NVIDIA's threshold"
        yield context.fail(EXCEEDED, message, exceeded, False)


CHECK = gpu_check(
    id="ecc_sram_threshold",
    order=180,
    title="SRAM error threshold",
    what="The 'SRAM Threshold Exceeded' flag of each GPU.",
    why="SRAM has no spare rows: a GPU over the threshold goes on failing jobs after every reset.",
    remedy="Replace the instance.",
    do="",
    out_of_service="Yes: NVIDIA asks for the GPU to be replaced.",
    first="nvidia-smi -q -d ECC",
    source="NVIDIA GPU memory error management; DCGM (SRAM_THRESHOLD, severity ISOLATE)",
    tags=("gpu", "memory"),
    skips=(*OF_GPU_FIELD, skips.DRIVER_SILENT),
    evaluate=each_gpu(
        "The flag is NVIDIA's own judgement and outlives resets.",
        "sram_threshold_exceeded",
        is_flag,
        "SRAM threshold flag",
        _judge,
        lambda _flags: "SRAM errors below NVIDIA's threshold on all GPUs",
        absent=skips.DRIVER_SILENT.because("not printed by this driver"),
        na=skips.DRIVER_SILENT.because("not kept for this product"),
    ),
)
