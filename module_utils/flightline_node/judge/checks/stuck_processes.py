"""Is a process stuck in the kernel, or are dead ones left behind?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Set

from ...model import Check, Facts, Finding, Reason, Remedy, Threshold
from .. import skips
from ..context import Context
from ..kernel_history import current

# Tools that answer within seconds, as the kernel cuts their names; daemons and jobs may wait for long.
STUCK = Reason("stuck", "a process is stuck in the kernel", Remedy.REBOOT)
WAITING = Reason("waiting", "many processes did not leave uninterruptible sleep")
ZOMBIES = Reason("zombies", "many zombie processes")
_TOOLS = frozenset({"nvidia-smi", "dcgmi", "nvidia-debugdum"})


def evaluate(context: Context) -> Iterator[Finding]:
    """Who did not leave uninterruptible sleep while watched, then the zombies."""
    facts = context.facts("processes")
    stuck, hung = facts["stuck"], _hung(context)
    dead = [process for process in stuck if _is_dead(context, process, hung)]
    waiting = [process for process in stuck if process not in dead]
    context.measure("stuck_processes", facts["stuck_count"], "processes")
    context.measure("zombie_processes", facts["zombie_count"], "processes")
    findings = [_dead(context, process, hung) for process in dead]
    findings += _waiting(context, waiting, facts["stuck_count"] - len(dead), facts.get("watched_s"))
    findings += _zombies(context, facts)
    yield from findings
    if not facts["init_seen"]:
        yield context.skip(
            skips.NOT_PRINTED.because("the processes of others are hidden from this user (hidepid): run it as root")
        )
    elif not findings:
        message = f"{facts['total']} processes, none stuck, {facts['zombie_count']} zombies"
        yield context.ok(message, measured=facts["total"], unit="processes")


def _hung(context: Context) -> Set[Any]:
    """Processes that the kernel called hung since the last boot, by number and name (numbers are used again)."""
    kernel = context.optional("kernel") or {}
    return {(event.get("pid"), event.get("process")) for event in current(kernel, "hung_task")}


def _is_dead(context: Context, process: Facts, hung: Set[Any]) -> bool:
    old = (process.get("age_s") or 0) >= context.threshold("tool_age_s")
    return (process["pid"], process["name"]) in hung or (process["name"] in _TOOLS and old)


def _dead(context: Context, process: Facts, hung: Set[Any]) -> Finding:
    said = (process["pid"], process["name"]) in hung
    why = "the kernel has called it hung" if said else f"it was started {process['age_s']:.0f} s ago"
    message = f"process {process['pid']} ({process['name']}) is stuck in the kernel: {why}"
    rest = {"measured": process.get("age_s", "stuck"), "expected": "a process that goes on"}
    named = {"device": {"name": process["name"]}, "evidence": _where(process)}
    return context.fail(STUCK.of(process["name"]), message, **named, **rest)


def _where(process: Facts) -> List[str]:
    first = f"{process['pid']} {process['name']}: waits in {process.get('wchan', 'an unnamed place')}"
    return [first, *process.get("stack", [])]


def _waiting(context: Context, stuck: List[Facts], count: int, watched_s: Any) -> Iterator[Finding]:
    if count >= context.threshold("stuck"):
        names = ", ".join(sorted({process["name"] for process in stuck})) or "not named"
        message = f"{count} processes did not leave uninterruptible sleep for {watched_s:g} s: {names}"
        evidence = [_where(process)[0] for process in stuck]
        yield context.warn(WAITING, message, measured=count, expected=0, unit="processes", evidence=evidence)


def _zombies(context: Context, facts: Facts) -> Iterator[Finding]:
    count, limit = facts["zombie_count"], context.threshold("zombies")
    if count >= limit:
        owners: Dict[str, int] = {}
        for process in facts["zombies"]:
            key = f"{process['name']} of {process['parent']}"
            owners[key] = owners.get(key, 0) + 1
        message = f"{count} zombie processes, wanted under {limit:g}: {', '.join(sorted(owners))}"
        yield context.warn(ZOMBIES, message, measured=count, expected=limit, unit="processes")


CHECK = Check(
    id="stuck_processes",
    order=450,
    title="Stuck processes",
    what="Processes that stay in uninterruptible sleep while they are watched, and zombies.",
    why="A process stuck in a driver cannot be killed and keeps its GPU, mount or memory until the node is rebooted.",
    remedy="Reboot the node. Before that read /proc/<pid>/stack: it names the driver or file system it waits for.",
    do="Before that read /proc/<pid>/stack: it names the driver or file system it waits for.",
    out_of_service="Yes when a process stays stuck in the kernel: only a reboot ends it. Zombies warn.",
    first="ps -eo pid,stat,etimes,wchan:32,comm | grep ' D'",
    source="proc_pid_stat(5); Linux admin guide, hung task detector",
    needs=("processes",),
    wants=("kernel",),
    tags=("host", "process"),
    thresholds=(
        Threshold(
            "tool_age_s",
            60,
            "s",
            "age from which a stuck GPU tool blocks the node",
            "nvidia-smi answers within seconds, without persistence mode too; the kernel's own limit is 120 s",
            5,
            86400,
        ),
        Threshold("stuck", 1, "processes", "others that are worth a warning", "a healthy idle node has none", 1, 10000),
        Threshold(
            "zombies",
            50,
            "processes",
            "zombies that are worth a warning",
            "a few are normal where a container's first process does not collect its children",
            1,
            1000000,
        ),
    ),
    skips=(skips.NOT_PRINTED,),
    evaluate=evaluate,
)
