"""Are all the CPUs of the instance type online?"""

from __future__ import annotations

from typing import Iterator, Optional

from ...model import Check, Finding, Reason, Remedy
from ..context import Context

NOT_COUNTED = Reason("not_counted", "the number of CPUs was not printed")
TOO_MANY = Reason("too_many", "more CPUs than the type has", Remedy.FIX_CONFIG)
OFFLINE = Reason("offline", "CPUs are offline", Remedy.FIX_CONFIG)
TOO_FEW = Reason("too_few", "CPUs of the type are not there", Remedy.FIX_CONFIG)

_LISTED = 16


def evaluate(context: Context) -> Iterator[Finding]:
    """Online CPUs against the type's vCPUs, or half of them where simultaneous multithreading is off."""
    facts = context.facts("cpuinfo")
    online, wanted = facts.get("online", facts.get("cpus")), context.expected.vcpus
    if online is None:
        yield (context.info if wanted is None else context.unknown)(NOT_COUNTED, "the number of CPUs was not printed")
        return
    context.measure("cpus_online", online, "CPUs")
    rest = {"measured": online, "expected": wanted, "unit": "CPUs"}
    offline = facts.get("offline") or []
    if wanted is None and offline:
        yield context.warn(OFFLINE, f"{online} CPUs online, {len(offline)} offline; nothing is expected", **rest)
    elif wanted is None:
        yield context.ok(f"{online} CPUs online, none offline; nothing is expected", measured=online, unit="CPUs")
    elif online > wanted:
        yield context.fail(TOO_MANY, f"{online} CPUs, wanted {wanted}: wrong instance type", **rest)
    elif online == wanted:
        yield context.ok(f"{online} CPUs online", **rest)
    elif _single_threaded(context, online, facts.get("threads_per_core")):
        yield context.ok(
            f"{online} CPUs online: one per core of {wanted} vCPUs, simultaneous multithreading is off", **rest
        )
    elif offline:
        shown = ", ".join(map(str, offline[:_LISTED])) + (" ..." if len(offline) > _LISTED else "")
        yield context.fail(OFFLINE, f"{online} of {wanted} CPUs online: offline are {shown}", **rest)
    else:
        message = f"{online} of {wanted} CPUs: the rest is not there (CPU options of the launch, or maxcpus= at boot)"
        yield context.fail(TOO_FEW, message, **rest)


def _single_threaded(context: Context, online: int, measured_threads: Optional[int]) -> bool:
    per_core = context.expected.threads_per_core
    return bool(per_core) and measured_threads == 1 and online * (per_core or 1) == context.expected.vcpus


CHECK = Check(
    id="cpu",
    order=410,
    title="CPUs online",
    what="The number of CPUs in use, against the type's vCPUs (one per core when hyper-threading is off).",
    why="Data loading and the proxy threads of NCCL need the cores; a node with fewer is the straggler of the job.",
    remedy="Bring offline CPUs back (chcpu -e), correct the launch template's CPU options, or set expected vcpus.",
    out_of_service="Yes: another machine, or CPUs that went offline; hyper-threading off is a choice.",
    source="AWS instance type tables (vCPUs, threads per core); lscpu(1)",
    needs=("cpuinfo",),
    informs=True,
    tags=("host", "compute"),
    evaluate=evaluate,
)
