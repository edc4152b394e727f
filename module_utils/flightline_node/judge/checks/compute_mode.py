"""May programs use every GPU?"""

from __future__ import annotations

from typing import Iterator

from ...model import Facts, Finding, Reason, Remedy
from .. import skips
from ..context import Context
from .common import OF_GPU_FIELD, each_gpu, gpu_check, is_word, one_of_each

OTHER_MODE = Reason("other_mode", "the compute mode keeps programs from the GPU", Remedy.FIX_CONFIG, "GPU")

_CLOSED = "prohibited"
GOOD = "Default"


def _judge(context: Context, gpu: Facts, mode: str) -> Iterator[Finding]:
    """One process on a GPU (Exclusive_Process) is a site's choice, and enough for a rank of a job."""
    if mode.lower() == _CLOSED:
        yield context.fail(OTHER_MODE, f"compute mode {mode}, wanted {GOOD}: no program can use the GPU", mode, GOOD)


CHECK = gpu_check(
    id="compute_mode",
    order=320,
    title="Compute mode",
    what="The compute mode of each GPU: whether programs may open it.",
    why="With Prohibited every CUDA program fails on that GPU, which looks healthy in everything else; it stays set "
    "until the driver is unloaded.",
    remedy="nvidia-smi -c 0 (Default), and look for what set it.",
    out_of_service="Yes when prohibited: no program can start. Exclusive mode is a choice.",
    first="nvidia-smi --query-gpu=index,compute_mode --format=csv",
    source="nvidia-smi manual, Compute Mode: Prohibited means no contexts are allowed per device (no compute apps)",
    tags=("gpu", "software"),
    skips=(*OF_GPU_FIELD, skips.NOT_PRINTED, skips.DRIVER_SILENT),
    evaluate=each_gpu(
        "Any mode but Prohibited.",
        "compute_mode",
        is_word,
        "compute mode",
        _judge,
        lambda modes: f"compute mode {one_of_each(modes)}",
        absent=skips.NOT_PRINTED.because("not printed by this driver"),
        na=skips.DRIVER_SILENT.because("this product has none"),
    ),
)
