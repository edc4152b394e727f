"""Did DCGM's background watches see a fault?"""

from __future__ import annotations

from typing import Any, Dict, Iterator

from ...know.catalog import dcgm as catalog
from ...model import Device, Facts, Finding, Reason
from .. import skips
from ..context import Context
from .common import OF_GPU, gpu_check, gpu_device

WATCH_FAILED = Reason("watch_failed", "a watch of DCGM failed", device="GPU")
WATCH_WARNED = Reason("watch_warned", "a watch of DCGM warned", device="GPU")
UNKNOWN_HEALTH = Reason("unknown_health", "a health that is not known")
NAMES_NOTHING = Reason("names_nothing", "DCGM is not healthy and names nothing")


def _device(context: Context, incident: Facts) -> Device:
    if incident.get("gpu") is None:
        return {"name": str(incident.get("entity", ""))}
    smi = (context.optional("nvidia_smi") or {}).get("gpus", [])
    known = [gpu for gpu in smi if gpu.get("index") == incident["gpu"]]
    return gpu_device(known[0]) if len(known) == 1 else {"index": incident["gpu"]}


def _judge(context: Context, incident: Facts) -> Finding:
    message = incident.get("message") or "no message"
    number = catalog.id_of(None, message)
    where = f"GPU {incident['gpu']}" if incident.get("gpu") is not None else str(incident.get("entity"))
    text = f"{where}: DCGM watches {incident['system']}: {message}"
    rest: Dict[str, Any] = {"device": _device(context, incident), "expected": "Healthy", "evidence": [message]}
    health = incident.get("health")
    remedy = catalog.remedy_of(number, None)
    if health == "Failure":
        return context.fail(WATCH_FAILED, text, remedy=remedy, measured=health, **rest)
    if health == "Warning":
        return context.warn(WATCH_WARNED, text, remedy=remedy, measured=health, **rest)
    return context.unknown(UNKNOWN_HEALTH, f"{text} (health: {health or 'not printed'})", **rest)


def evaluate(context: Context) -> Iterator[Finding]:
    """A failure of a watch fails, its warning warns. Without watches, or without DCGM, nothing was watched: SKIP."""
    facts = context.facts("dcgm_health")
    if facts.get("watches") is False:
        yield context.skip(
            skips.DCGM_IDLE.because("DCGM watches nothing on this node (dcgmi health -s a sets its watches)")
        )
    elif facts.get("error"):
        yield context.skip(skips.NO_DCGM.because(f"DCGM gave no health report: {facts['error']}"))
    else:
        overall, findings = facts["overall"], [_judge(context, incident) for incident in facts["incidents"]]
        yield from findings
        if not findings and overall == "Healthy":
            yield context.ok("DCGM's watches saw nothing", measured=overall, expected="Healthy")
        elif not findings:
            yield context.unknown(NAMES_NOTHING, f"DCGM's overall health is {overall}, and it names nothing", overall)


CHECK = gpu_check(
    id="dcgm_health",
    order=800,
    title="DCGM health watches",
    what="What DCGM's background watches saw of each GPU, NVSwitch and CPU since they were set: memory, PCIe, NVLink, "
    "power, heat, InfoROM, driver.",
    why="They see what happens while jobs run, between two preflights.",
    remedy="By DCGM's error: see dcgm_diag; run the diagnostic on the idle node.",
    out_of_service="Yes for a failure that DCGM watched; its warnings warn, and no watch is no finding.",
    source="NVIDIA/DCGM 4.6 dcgmi/Health.cpp; DCGM user guide, background health checks",
    needs=("dcgm_health",),
    wants=("nvidia_smi",),
    tags=("dcgm", "gpu"),
    skips=(*OF_GPU, skips.DCGM_IDLE, skips.NO_DCGM),
    evaluate=evaluate,
)
