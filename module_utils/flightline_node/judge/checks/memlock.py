"""May a job lock as much memory as EFA needs?"""

from __future__ import annotations

from typing import Any, Iterator, List, Tuple

from ...model import Check, Facts, Finding, Reason, Remedy, Threshold
from .. import skips
from ..context import Context
from .efa_count import no_efa

NOT_SHOWN = Reason("not_shown", "no limit of locked memory is printed")
TOO_LOW = Reason("too_low", "the limit of locked memory is too low", Remedy.FIX_CONFIG)

KIB_PER_GIB = 1 << 20
SLURM = "slurmd"
KUBELET = frozenset({"kubelet", "k3s"})


def evaluate(context: Context) -> Iterator[Finding]:
    """The limit that jobs get: slurmd's where there is one, else the best of what can start a job here."""
    facts = context.facts("limits")
    launcher = facts.get("launchers", {}).get(SLURM)
    # slurmd sets a job's soft limit, up to its own hard limit.
    sources = [(SLURM, launcher.get("memlock_hard_kib"))] if launcher else _sources(facts)
    least = context.threshold("min_gib")
    best = max(sources, key=lambda source: _gib(source[1]))
    rest = {"measured": _shown(best[1]), "expected": f"{least:g} GiB or unlimited"}
    if _gib(best[1]) >= least:
        yield context.ok(f"locked memory: {_shown(best[1])} ({best[0]})", **rest)
    elif _gib(best[1]) < 0:
        yield context.unknown(NOT_SHOWN, "no limit of locked memory printed")
    else:
        seen = "; ".join(f"{name}: {_shown(value)}" for name, value in sources)
        message = f"jobs may lock only {_shown(best[1])} of memory, wanted {least:g} GiB or unlimited"
        if KUBELET & set(facts.get("launchers", {})):
            # The runtime's base spec may raise a pod's limit, and nothing here shows it.
            yield context.warn(TOO_LOW, f"{message} (unless the runtime raises it)", evidence=[seen], **rest)
        else:
            yield context.fail(TOO_LOW, message, evidence=[seen], **rest)


def _sources(facts: Facts) -> List[Tuple[str, Any]]:
    """The session, container launchers, and what pam_limits gives to users: '*' there does not mean root."""
    sources = [("this session", facts.get("memlock_soft_kib"))]
    for name, limit in facts.get("launchers", {}).items():
        if name not in KUBELET:  # a pod has its limits from the container runtime
            sources.append((name, limit.get("memlock_soft_kib")))
    for line in facts.get("configured", []):
        if line["type"] in ("soft", "-") and line["domain"] != "root":
            sources.append((f"pam_limits for {line['domain']}", line["memlock_kib"]))
    return sources


def _gib(value: Any) -> float:
    if value == "unlimited":
        return float("inf")
    return value / KIB_PER_GIB if isinstance(value, int) else -1.0


def _shown(value: Any) -> str:
    return f"{value} KiB" if isinstance(value, int) else str(value)


CHECK = Check(
    id="memlock",
    order=500,
    title="Locked memory limit",
    what="How much memory a job may lock: by the limit of slurmd, the container runtime, the session or pam_limits.",
    why="EFA registers memory by locking it; with the default of 8 MiB libfabric ends with 'Cannot allocate memory'.",
    remedy="'* - memlock unlimited' in /etc/security/limits.d; LimitMEMLOCK=infinity for slurmd or containerd.",
    out_of_service="Yes on a type with EFA: endpoints cannot be opened and the job does not start.",
    source="libfabric EFA provider documentation; awsome-distributed-ai (sample check warns below 16 GiB)",
    needs=("limits",),
    expects=("efa_count",),
    tags=("host", "mem", "efa"),
    thresholds=(Threshold("min_gib", 16, "GiB", "least locked memory", "awsome-distributed-ai: EFA sample check", 0),),
    applies=no_efa,
    skips=(skips.NO_EFA,),
    evaluate=evaluate,
)
