"""Are all the GPUs of the instance type there?"""

from __future__ import annotations

from typing import Any, Dict, Iterator

from ...model import Finding, Reason, Remedy
from ..context import Context
from .common import gpu_check, is_word

NOT_LISTED = Reason("not_listed", "nvidia-smi could not list the GPUs")
TWICE = Reason("listed_twice", "nvidia-smi lists a GPU twice")
NONE = Reason("none", "no GPU is listed", Remedy.REBOOT)
TOO_FEW = Reason("too_few", "GPUs of the type are missing", Remedy.REBOOT, counts=True)
TOO_MANY = Reason("too_many", "more GPUs than the type has", Remedy.FIX_CONFIG)


def evaluate(context: Context) -> Iterator[Finding]:
    """Compare the GPUs listed with the instance type's count; more is as wrong as fewer."""
    facts = context.facts("nvidia_smi")
    wanted, gpus = context.expected.gpu_count or 0, facts.get("gpus", [])
    listed, evidence = len(gpus), [str(error.get("text", "")) for error in facts.get("errors", [])]
    context.measure("gpu_count", listed, "GPUs")
    rest: Dict[str, Any] = {"measured": listed, "expected": wanted, "unit": "GPUs"}
    ids = [gpu["uuid"] for gpu in gpus if is_word(gpu.get("uuid"))]
    if not listed and evidence and not any("no devices" in text.lower() for text in evidence):
        yield context.unknown(
            NOT_LISTED, "nvidia-smi could not list the GPUs", expected=wanted, unit="GPUs", evidence=evidence
        )
    elif len(set(ids)) < len(ids):
        yield context.unknown(TWICE, f"nvidia-smi lists a GPU twice: {len(set(ids))} different of {len(ids)}", **rest)
    elif listed < wanted:
        message = f"{listed} of {wanted} GPUs: {wanted - listed} missing"
        yield context.fail(TOO_FEW if listed else NONE, message, evidence=evidence, **rest)
    elif listed > wanted:
        yield context.fail(TOO_MANY, f"{listed} GPUs, wanted {wanted}: wrong instance type", **rest)
    else:
        yield context.ok(f"{listed} GPUs", **rest)


CHECK = gpu_check(
    id="gpu_count",
    order=10,
    title="GPU count",
    what="The number of GPUs that nvidia-smi lists, against the instance type.",
    why="A job that expects eight ranks on a node with seven GPUs fails at start, or hangs the whole cluster.",
    remedy="Reboot once: a GPU lost from the bus often returns. If it does not, replace the instance.",
    do="",
    out_of_service="Yes: a job that asks for all GPUs does not start.",
    first="nvidia-smi -L; lspci -d 10de:",
    source="AWS instance type tables; device count row of NVIDIA's GPU debug guidelines",
    expects=("gpu_count",),
    tags=("gpu",),
    evaluate=evaluate,
)
