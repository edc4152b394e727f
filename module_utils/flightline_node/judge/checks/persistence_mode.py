"""Is persistence mode on?"""

from __future__ import annotations

from typing import Iterator

from ...model import Facts, Finding, Reason, Remedy
from ..context import Context
from .common import OF_GPU_FIELD, each_gpu, gpu_check, is_word, one_of_each

OTHER_MODE = Reason("other_mode", "the persistence mode is not the wanted one", Remedy.FIX_CONFIG, "GPU")
DEFAULT = "Enabled"


def _judge(context: Context, gpu: Facts, mode: str) -> Iterator[Finding]:
    wanted = context.expected.persistence_mode or DEFAULT
    if mode.lower() != wanted.lower():
        message = f"persistence mode {mode}, wanted {wanted}"
        # It slows the start of a job and breaks nothing: only a site that asks for it gives up a node for it.
        judge = context.fail if context.expected.persistence_mode else context.warn
        yield judge(OTHER_MODE, message, mode, wanted)


CHECK = gpu_check(
    id="persistence_mode",
    order=140,
    title="Persistence mode",
    what="The persistence mode of each GPU.",
    why="Without it the driver unloads the GPU between jobs: slow starts, lost clock settings, and NVLink "
    "retraining at each start.",
    remedy="Enable and start nvidia-persistenced (or nvidia-smi -pm 1), and make it start at boot.",
    out_of_service="No: starts are slower, and it can be set on a running node. Yes where the site expects it.",
    first="systemctl status nvidia-persistenced",
    source="DCGM level 1 software test (PERSISTENCE_MODE, severity CONFIG)",
    tags=("gpu", "software"),
    skips=OF_GPU_FIELD,
    evaluate=each_gpu(
        "Off warns; where the site expects a mode, another one fails.",
        "persistence_mode",
        is_word,
        "persistence mode",
        _judge,
        lambda modes: f"{one_of_each(modes)}",
    ),
)
