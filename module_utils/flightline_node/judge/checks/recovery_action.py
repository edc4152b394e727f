"""Does the driver itself ask for a reset, a reboot or a drain?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, Optional, Tuple

from ...model import Facts, Finding, Reason, Remedy
from .. import reasons, skips
from ..context import Context
from .common import OF_GPU_FIELD, gpu_check, gpus, is_broken, is_flag, is_word, judge_gpus

# nvmlDeviceGpuRecoveryAction_t of nvml.h; nvidia-smi prints some with and some without the first word.
_ACTIONS: Dict[str, Optional[Tuple[Remedy, str]]] = {
    "none": None,
    "reset": (Remedy.RESET_GPU, "reset the GPU"),
    "reboot": (Remedy.REBOOT, "reboot the node"),
    "bus reset": (Remedy.REBOOT, "reset the GPU's PCIe bus: reboot the node"),
    "drain p2p": (Remedy.RESET_GPU, "stop all peer-to-peer (NVLink) traffic of the GPU, then reset it"),
    "drain and reset": (Remedy.RESET_GPU, "drain the GPU, then reset it"),
    "recover imex domain": (Remedy.FIX_CONFIG, "restart nvidia-imex on every node of the NVLink domain"),
}
ASKED = Reason("asked", "the driver asks for a recovery action", Remedy.RESET_GPU, "GPU")
UNKNOWN_ACTION = Reason("unknown_action", "the driver asks for an action that is not known", device="GPU")
_FLAGS = (("reset_required", "a reset"), ("drain_and_reset_recommended", "a drain and a reset"))


def _flags(context: Context, gpu: Facts, _value: Any) -> Iterator[Finding]:
    for name, meaning in _FLAGS:
        value = gpu.get(name)
        if value is True:
            yield context.fail(ASKED, f"the driver asks for {meaning}", name, "None")
        elif is_broken(value):
            yield context.unknown(reasons.VALUE_UNREAD, f"{name} could not be read: {value}")


def _action(context: Context, gpu: Facts, action: str) -> Iterator[Finding]:
    name = action.strip().lower().replace("_", " ")
    for word in ("gpu ", "node ", "system "):
        name = name[len(word) :] if name.startswith(word) else name
    known = _ACTIONS.get(name)
    if known:
        yield context.fail(ASKED, f"recovery action '{action}': {known[1]}", action, "None", remedy=known[0])
    elif name not in _ACTIONS:
        yield context.unknown(UNKNOWN_ACTION, f"unknown recovery action '{action}'", action, "None")
    yield from _flags(context, gpu, None)


def evaluate(context: Context) -> Iterator[Finding]:
    """The recovery action of newer drivers (from 565), or the reset flags of older ones (535 to 570)."""
    newer = any(gpu.get("recovery_action") is not None for gpu in gpus(context))
    yield from judge_gpus(
        context,
        "recovery_action" if newer else "reset_required",
        is_word if newer else is_flag,
        "recovery action",
        _action if newer else _flags,
        lambda _values: "the driver asks for no recovery",
        absent=skips.DRIVER_SILENT.because("not printed by this driver (before 535)"),
        na=skips.DRIVER_SILENT.because("not supported by this product"),
    )


CHECK = gpu_check(
    id="recovery_action",
    order=220,
    title="GPU recovery action",
    what="The recovery action, or the reset flags, that the driver prints for each GPU.",
    why="The driver knows of an error that only a reset or a reboot clears; jobs fail until then.",
    remedy="Do what the action says: drain, reset the GPU, or reboot. If it comes back, replace the instance.",
    do="",
    out_of_service="Yes: the driver itself asks for it.",
    first="nvidia-smi -q | grep -i 'recovery action'",
    source="NVML nvmlDeviceGpuRecoveryAction_t; NVIDIA Xid catalog (Xid 154); DCGM GPU_RECOVERY_* errors",
    tags=("gpu",),
    skips=(*OF_GPU_FIELD, skips.DRIVER_SILENT),
    evaluate=evaluate,
)
