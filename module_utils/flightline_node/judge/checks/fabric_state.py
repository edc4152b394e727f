"""Has every GPU joined the NVSwitch fabric, and is the fabric sound?"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Iterator, List, Optional

from ...model import Check, Facts, Finding, Reason, Remedy, Skip
from .. import reasons, skips
from ..context import Context
from .common import (
    OF_GPU_FIELD,
    about,
    gpu_label,
    gpus,
    is_broken,
    is_word,
    judge_gpus,
    nvidia_gpus_expected,
    one_of_each,
    untyped,
)

NOT_REGISTERED = Reason("not_registered", "a GPU has not joined the fabric", Remedy.FIX_CONFIG, "GPU")
UNKNOWN_STATE = Reason("unknown_state", "a fabric state that is not known", device="GPU")
NO_STATUS = Reason("no_status", "the fabric is completed, and no status is printed", device="GPU")
FAILED = Reason("failed", "the registration with the fabric failed", Remedy.REBOOT, "GPU")
UNHEALTHY = Reason("unhealthy", "the fabric of a GPU is not sound", Remedy.REBOOT, "GPU")
DIVIDED = Reason("divided", "the node's GPUs are in different NVLink domains", Remedy.REBOOT, "GPU")
_WAITING = ("in progress", "not started")
_HEALTH_WORDS = frozenset({"", "full", "healthy", "false", "no", "none", "n/a", "not supported"})
_HEALTH_NAMES = ("summary", "bandwidth", "route", "access_timeout", "incorrect_config", "partition_assigned")
# Good when true. Drivers before 595 say "No Partition" under Incorrect Configuration instead.
_UNHEALTHY = frozenset({"unhealthy", "limited capacity"})
_WANTED = frozenset({"partition_assigned"})
_YES_WORDS = frozenset({"", "true", "yes", "n/a", "not supported"})


_MASK = re.compile(r"0x[0-9a-fA-F]{1,8}|\d{1,10}")
_FIELDS = (("bandwidth degraded", 0), ("route recovery", 2), ("route unhealthy", 4), ("access time-out", 6))
_FAULT, _CONFIG_SHIFT, _CONFIG_BAD = 1, 8, 2
"""nvml.h, NVML_GPU_FABRIC_HEALTH_MASK: two bits each (1 fault, 2 in order, 0 not told), then four of configuration."""


def _of_mask(text: str) -> List[str]:
    """The conditions of a health mask that is printed as a number."""
    mask = int(text, 16 if text.lower().startswith("0x") else 10)
    bad = [name for name, shift in _FIELDS if (mask >> shift) & 3 == _FAULT]
    wrong = (mask >> _CONFIG_SHIFT) & 15
    return [*bad, *([f"incorrect configuration {wrong}"] if wrong >= _CONFIG_BAD else [])]


def _unhealthy(health: Any) -> List[str]:
    """The conditions of the health block that are not in order; unknown ones are left alone."""
    if isinstance(health, (str, int)) and not isinstance(health, bool):
        text = str(health).strip()
        bad = _of_mask(text) if _MASK.fullmatch(text) else [text] if is_broken(text) else []
        return bad if _MASK.fullmatch(text) or bad else [f"summary: {text}"] if text.lower() in _UNHEALTHY else []
    items = health.items() if isinstance(health, dict) else ()
    return [
        f"{name}: {value}"
        for name, value in items
        if value is not None
        and name.startswith(_HEALTH_NAMES)
        and str(value).strip().lower() not in (_YES_WORDS if name in _WANTED else _HEALTH_WORDS)
    ]


def _judge(context: Context, gpu: Facts, state: str) -> Iterator[Finding]:
    label, status = gpu_label(gpu), gpu.get("fabric_status")
    rest = about(gpu, f"{state}, {status}", "Completed, Success")
    if state.lower() in _WAITING:
        message = f"{label}: fabric {state}: not registered with the fabric manager"
        yield context.fail(NOT_REGISTERED, message, **rest)
    elif state.lower() != "completed":
        yield context.unknown(UNKNOWN_STATE, f"{label}: unknown fabric state '{state}'", **rest)
    elif status is None:
        yield context.unknown(NO_STATUS, f"{label}: fabric completed, but no status printed", **rest)
    elif str(status).lower() != "success":
        yield context.fail(FAILED, f"{label}: fabric completed with status {status}", **rest)
    else:
        bad = _unhealthy(gpu.get("fabric_health"))
        unread = [text for text in bad if is_broken(text)]
        if unread:
            message = f"{label}: fabric health could not be read ({', '.join(unread)})"
            yield context.unknown(reasons.VALUE_UNREAD, message, **rest)
        elif bad:
            yield context.fail(UNHEALTHY, f"{label}: fabric unhealthy ({', '.join(bad)})", evidence=bad, **rest)


def _one_domain(context: Context) -> Iterator[Finding]:
    """GPUs of one node that are in different NVLink domains cannot reach each other."""
    joined = [gpu for gpu in gpus(context) if str(gpu.get("fabric_state")).lower() == "completed"]
    for name in ("fabric_cluster_uuid", "fabric_clique_id"):
        told = [(gpu, str(gpu[name])) for gpu in joined if gpu.get(name) is not None and not is_broken(gpu[name])]
        (most, count), *others = Counter(value for _, value in told).most_common() or [("", 0)]
        if not others:
            continue
        odd = [gpu for gpu, value in told if value != most]
        one = odd[0] if len(odd) == 1 < count else None  # the one that differs from all the others
        shown = one_of_each(value for _, value in told)
        whose = f", {gpu_label(one)} from the others" if one else ""
        message = f"the GPUs of the node are in different NVLink domains{whose} ({name}: {shown}), wanted one domain"
        lines = [f"{gpu_label(gpu)}: {name} {value}" for gpu, value in told]
        rest = about(one, shown, "one domain") if one else {"measured": shown, "expected": "one domain"}
        yield context.fail(DIVIDED, message, evidence=lines, **rest)


def _silent(context: Context) -> Optional[Skip]:
    """Why N/A is normal here: A100 joins its fabric without telling NVML."""
    a100 = all("A100" in str(gpu.get("name")) for gpu in gpus(context)) or context.expected.gpu_generation == "ampere"
    return skips.SILENT_FABRIC.because("A100 does not report it") if a100 else untyped(context)


def _switched(context: Context) -> Optional[Skip]:
    if context.expected.nvswitch is False:
        return skips.NO_NVSWITCH.because(f"{context.expected.instance_type} has no NVSwitch")
    return nvidia_gpus_expected(context)


def evaluate(context: Context) -> Iterator[Finding]:
    """Completed and Success on NVSwitch types, with no condition in the health block."""
    domains = list(_one_domain(context))
    yield from domains
    for finding in judge_gpus(
        context,
        "fabric_state",
        is_word,
        "fabric state",
        _judge,
        lambda states: f"fabric registration completed on {len(states)} GPUs",
        absent=skips.NOT_PRINTED.because("not printed by this driver (before 525)"),
        na=_silent(context),
    ):
        if not (domains and finding.status == "PASS"):
            yield finding


CHECK = Check(
    id="fabric_state",
    order=370,
    title="NVSwitch fabric state",
    what="Fabric registration state, status and health of each GPU on NVSwitch instance types.",
    why="A GPU that has not joined the fabric fails at CUDA start (error 802), or runs without NVLink.",
    remedy="Start nvidia-fabricmanager of exactly the driver's version (on P6 also NVLSM, with ib_umad loaded). "
    "Completed with an error, or unhealthy: reboot; if it stays, replace the instance.",
    do="Start nvidia-fabricmanager of exactly the driver's version (on P6 also NVLSM, with ib_umad loaded).",
    out_of_service="Yes: CUDA does not start, or runs without NVLink.",
    first="nvidia-smi -q | grep -A8 -w Fabric; systemctl status nvidia-fabricmanager",
    source="NVIDIA fabric manager user guide; NVML nvmlGpuFabricInfo (health mask); DCGM FABRIC_PROBE_STATE",
    needs=("nvidia_smi",),
    tags=("gpu", "nvlink"),
    applies=_switched,
    skips=(*OF_GPU_FIELD, skips.NO_NVSWITCH, skips.SILENT_FABRIC, skips.UNTYPED, skips.NOT_PRINTED),
    evaluate=evaluate,
)
