"""Is confidential computing off, or at least ready?"""

from __future__ import annotations

from typing import Iterator

from ...model import Finding, Reason, Remedy
from .. import skips
from ..context import Context
from .common import OF_GPU, gpu_check

NOT_READY = Reason("not_ready", "confidential computing does not let programs use the GPUs", Remedy.FIX_CONFIG)
STATE_ON = Reason("state_on", "confidential computing is on", Remedy.FIX_CONFIG)

_OFF, _ON = frozenset({"off", "disabled"}), frozenset({"on", "enabled", "devtools"})


def evaluate(context: Context) -> Iterator[Finding]:
    """Off passes. On warns, as copies are then encrypted; on and not ready fails: no CUDA program starts."""
    facts = context.facts("conf_compute")
    state, ready = facts.get("state"), facts.get("ready", "")
    if state in _OFF:
        yield context.ok("confidential computing is off", measured=state, expected="off")
    elif state in _ON and ready.startswith("not"):
        text = "confidential computing is on and the GPUs are not ready: no CUDA program can start"
        yield context.fail(NOT_READY, text, measured=ready, expected="ready")
    elif state in _ON:
        text = "confidential computing is on: copies between host and GPU, and between GPUs, are slower"
        yield context.warn(STATE_ON, text, measured=state, expected="off")
    else:
        yield context.skip(
            skips.DRIVER_SILENT.because(
                f"nvidia-smi does not say whether confidential computing is on: {facts.get('said')}"
            )
        )


CHECK = gpu_check(
    id="conf_compute",
    order=340,
    title="Confidential computing",
    what="The confidential-computing state of the GPUs, and whether they accept work.",
    why="It encrypts what crosses PCIe and NVLink; GPUs that were not set ready refuse every program.",
    remedy="Switch it off, or set the GPUs ready after attestation (nvidia-smi conf-compute -srs 1).",
    out_of_service="Yes when on and not ready: no program starts. On alone warns: it costs speed.",
    source="nvidia-smi manual, conf-compute; NVIDIA trusted computing deployment guide",
    needs=("conf_compute",),
    tags=("gpu", "software"),
    skips=(*OF_GPU, skips.DRIVER_SILENT),
    evaluate=evaluate,
)
