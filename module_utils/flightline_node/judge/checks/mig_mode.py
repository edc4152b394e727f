"""Is Multi-Instance GPU in the mode wanted, with no change waiting?"""

from __future__ import annotations

from typing import Iterator

from ...model import Facts, Finding, Reason, Remedy
from .. import skips
from ..context import Context
from .common import OF_GPU_FIELD, gpu_check, is_broken, is_word, judge_gpus, one_of_each

PENDING_UNREAD = Reason("pending_unread", "the pending MIG mode could not be read", device="GPU")
PENDING_OTHER = Reason("pending_other", "another MIG mode is set for the next reset", device="GPU")
OTHER_MODE = Reason("other_mode", "the MIG mode is not the wanted one", Remedy.FIX_CONFIG, "GPU")

DEFAULT = "Disabled"


def _judge(context: Context, gpu: Facts, mode: str) -> Iterator[Finding]:
    expected = context.expected
    wanted, pending = expected.mig_mode or DEFAULT, gpu.get("mig_mode_pending")
    rest = (mode, wanted)
    if is_broken(pending):
        yield context.unknown(PENDING_UNREAD, f"pending MIG mode could not be read: {pending}", *rest)
    elif pending is not None and pending != mode:
        remedy = Remedy.RESET_GPU if str(pending).lower() == wanted.lower() else Remedy.FIX_CONFIG
        yield context.fail(PENDING_OTHER, f"MIG {mode}, {pending} after the next reset", *rest, remedy=remedy)
    elif mode.lower() != wanted.lower():
        message = f"MIG {mode}, wanted {wanted}"
        if expected.mig_mode or (expected.gpu_count or 0) > 1:
            yield context.fail(OTHER_MODE, message, *rest)
        else:
            yield context.warn(OTHER_MODE, message, *rest)


def evaluate(context: Context) -> Iterator[Finding]:
    """Off by default: with MIG on, a GPU has no NVLink to its peers."""
    wants_it = (context.expected.mig_mode or DEFAULT) != DEFAULT
    yield from judge_gpus(
        context,
        "mig_mode",
        is_word,
        "MIG mode",
        _judge,
        lambda modes: f"MIG {one_of_each(modes)}, nothing pending",
        absent=None if wants_it else skips.NOT_PRINTED.because("not printed by this driver"),
        na=None if wants_it else skips.NO_MIG.because("this product has no MIG"),
    )


CHECK = gpu_check(
    id="mig_mode",
    order=330,
    title="MIG mode",
    what="The current and the pending Multi-Instance GPU mode of each GPU.",
    why="A GPU cut into instances has no peer-to-peer access: a job over all GPUs fails or crawls.",
    remedy="nvidia-smi -mig 0, then reset the GPUs or reboot. For a node that shall have MIG, set expected mig_mode.",
    out_of_service="Yes where the site expects another mode, or one waits for a reset; else it warns.",
    first="nvidia-smi --query-gpu=mig.mode.current,mig.mode.pending --format=csv",
    source="NVIDIA MIG user guide, Application Considerations",
    tags=("gpu", "software"),
    skips=(*OF_GPU_FIELD, skips.NO_MIG, skips.NOT_PRINTED),
    evaluate=evaluate,
)
