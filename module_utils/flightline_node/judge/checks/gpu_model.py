"""Is every GPU the model of the instance type?"""

from __future__ import annotations

import re
from typing import Iterator

from ...model import Facts, Finding, Reason, Remedy
from .. import skips
from ..context import Context
from .common import OF_GPU_FIELD, gpu_check, is_word, judge_gpus, one_of_each

OTHER_MODEL = Reason("other_model", "a GPU is of another model", device="GPU")


def _has(name: str, word: str) -> bool:
    """Whole words only: 'L4' is in 'NVIDIA L4' and not in 'NVIDIA L40S'; '-' separates words."""
    return bool(re.search(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])", name, re.IGNORECASE))


def _judge(context: Context, gpu: Facts, name: str) -> Iterator[Finding]:
    expected = context.expected
    missing = [word for word in expected.gpu_name_has if not _has(name, word)]
    alien = [word for word in expected.gpu_name_lacks if _has(name, word)]
    if not missing and not alien:
        return
    # A driver older than the board knows it by this name only.
    remedy = Remedy.UPDATE_SOFTWARE if "Graphics Device" in name else Remedy.FIX_CONFIG
    wanted = expected.gpu_model or " ".join(expected.gpu_name_has)
    yield context.fail(OTHER_MODEL, f"{name}, wanted {wanted}", name, wanted, remedy=remedy)


def evaluate(context: Context) -> Iterator[Finding]:
    """The product name must have the type's words, and none of the words of its look-alikes."""
    if not context.expected.gpu_name_has:
        yield context.skip(
            skips.UNTYPED.because("no expected GPU model known: needs an instance type (or expected gpu_model)")
        )
        return
    yield from judge_gpus(context, "name", is_word, "product name", _judge, lambda names: f"all {one_of_each(names)}")


CHECK = gpu_check(
    id="gpu_model",
    order=20,
    title="GPU model",
    what="The product name of each GPU, against the model of the instance type.",
    why="One slower model in a job sets the pace of all ranks, and memory sizes planned for another model fail.",
    remedy="Check that the inventory names the right instance type. A name without a model means the driver is "
    "older than the GPU: update it.",
    out_of_service="Yes: it is not the machine that is paid for.",
    source="AWS instance type tables; product names printed by nvidia-smi",
    tags=("gpu",),
    skips=(*OF_GPU_FIELD, skips.UNTYPED),
    evaluate=evaluate,
)
