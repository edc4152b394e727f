"""Do all GPUs of a model run the same VBIOS, and the pinned one?"""

from __future__ import annotations

from typing import Dict, Iterator, Set

from ...model import Facts, Finding, Reason, Remedy
from .. import skips
from ..context import Context
from .common import OF_GPU_FIELD, gpu_check, gpus, is_word, judge_gpus, one_of_each

NOT_PINNED = Reason("not_pinned", "the VBIOS is not the pinned one", Remedy.REPLACE, "GPU")
DIFFERS = Reason("differs", "the VBIOS differs within the node")


def _judge(context: Context, gpu: Facts, version: str) -> Iterator[Finding]:
    pinned = context.expected.vbios_version
    # Hexadecimal groups (96.00.A5.00.01): compared as text, whole groups at a time.
    if pinned and not (version + ".").lower().startswith(pinned.lower() + "."):
        yield context.fail(NOT_PINNED, f"VBIOS {version}, pinned to {pinned}", version, pinned)


def _differing(context: Context) -> Iterator[Finding]:
    by_model: Dict[str, Set[str]] = {}
    for gpu in gpus(context):
        if is_word(gpu.get("vbios_version")):
            by_model.setdefault(str(gpu.get("name")), set()).add(gpu["vbios_version"])
    for model, versions in by_model.items():
        if len(versions) > 1:
            shown = one_of_each(versions)
            yield context.warn(DIFFERS, f"{model}: VBIOS differs within the node: {shown}", shown)


def evaluate(context: Context) -> Iterator[Finding]:
    """Against the pin, and between the GPUs of the node."""
    differing = list(_differing(context))
    yield from differing
    absent = None if context.expected.vbios_version else skips.NOT_PRINTED.because("not printed")
    good = "VBIOS {}".format
    for finding in judge_gpus(
        context, "vbios_version", is_word, "VBIOS version", _judge, lambda x: good(one_of_each(x)), absent=absent
    ):
        if not (differing and finding.status == "PASS"):
            yield finding


CHECK = gpu_check(
    id="gpu_vbios",
    order=110,
    title="VBIOS version",
    what="The VBIOS version of each GPU: the pinned one, and the same for all GPUs of a model.",
    why="VBIOS versions differ in power and clock tables: one other GPU in the node becomes the straggler.",
    remedy="On EC2 the VBIOS belongs to AWS: replace the instance, or lift the pin when a fleet moves on.",
    do="",
    out_of_service="Yes where the site pins it; GPUs that differ warn.",
    first="nvidia-smi --query-gpu=index,vbios_version --format=csv",
    source="NVIDIA GPU debug guidelines; the site's pin",
    tags=("gpu", "software"),
    skips=(*OF_GPU_FIELD, skips.NOT_PRINTED),
    evaluate=evaluate,
)
