"""Is ECC on, and does it stay on?"""

from __future__ import annotations

import re
from typing import Iterator

from ...model import Facts, Finding, Reason, Remedy
from .. import skips
from ..context import Context
from .common import OF_GPU_FIELD, each_gpu, gpu_check, is_broken, is_word, one_of_each, untyped

PENDING_UNREAD = Reason("pending_unread", "the pending ECC mode could not be read", device="GPU")
WAITS_FOR_RESET = Reason("waits_for_reset", "the wanted ECC mode waits for a reset", Remedy.RESET_GPU, "GPU")
PENDING_OTHER = Reason("pending_other", "another ECC mode is set for the next reset", Remedy.FIX_CONFIG, "GPU")
OTHER_MODE = Reason("other_mode", "the ECC mode is not the wanted one", Remedy.FIX_CONFIG, "GPU")

DEFAULT = "Enabled"
# Boards of the RTX and GeForce lines leave the factory with ECC off, or have none.
_OPTIONAL = re.compile(r"\b(?:RTX|GeForce|TITAN)\b", re.IGNORECASE)


def _judge(context: Context, gpu: Facts, mode: str) -> Iterator[Finding]:
    wanted = context.expected.ecc_mode or DEFAULT
    pending = gpu.get("ecc_mode_pending")
    rest = (mode, wanted)
    if is_broken(pending):
        yield context.unknown(PENDING_UNREAD, f"pending ECC mode could not be read: {pending}", *rest)
    elif pending is not None and pending != mode and str(pending).lower() == wanted.lower():
        yield context.fail(WAITS_FOR_RESET, f"ECC {mode}, {pending} after the next reset", *rest)
    elif pending is not None and pending != mode:
        # It is as wanted until someone resets the GPU.
        yield context.warn(PENDING_OTHER, f"ECC {mode}, but {pending} after the next reset", *rest)
    elif mode.lower() != wanted.lower():
        message = f"ECC {mode}, wanted {wanted}"
        if context.expected.ecc_mode is None and _OPTIONAL.search(str(gpu.get("name"))):
            yield context.warn(OTHER_MODE, message + " (optional on this board)", *rest)
        else:
            yield context.fail(OTHER_MODE, message, *rest)


CHECK = gpu_check(
    id="ecc_mode",
    order=150,
    title="ECC mode",
    what="The current and the pending ECC mode of each GPU.",
    why="Without ECC a flipped bit becomes a wrong gradient without a trace; a pending change takes effect "
    "at a reset in the middle of a campaign.",
    remedy="nvidia-smi -e 1, then reset the GPUs or reboot. A pending change needs only the reset.",
    out_of_service="Yes when off on a data-centre GPU: errors spoil a model unseen. A change to come warns.",
    first="nvidia-smi -q -d ECC",
    source="NVIDIA GPU memory error management; DCGM (ECC_DISABLED, severity CONFIG)",
    tags=("gpu", "memory"),
    skips=(*OF_GPU_FIELD, skips.UNTYPED),
    evaluate=each_gpu(
        "Current mode as wanted, and the pending mode equal to it.",
        "ecc_mode",
        is_word,
        "ECC mode",
        _judge,
        lambda modes: f"ECC {one_of_each(modes)}, nothing pending",
        na=untyped,
    ),
)
