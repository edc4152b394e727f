"""Did the kernel report trouble with memory, CPUs, disks, file systems or the NVIDIA driver?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

from ...model import Check, Device, Facts, Finding, Reason, Status
from ..context import Context
from ..kernel_cases import (
    CASES,
    EXPIRED,
    GSP_KINDS,
    MISMATCH,
    NETWORK_RESET,
    NOT_LOADED,
    NOT_STARTED,
    REFUSED,
    SILENT_SERVER,
    SLOT_EMPTY,
    STALLS,
    THRESHOLDS,
    UNLOADED,
    UNUSABLE,
    Case,
)
from ..kernel_history import (
    UNSPLIT,
    current,
    device_at,
    driver_loaded_after,
    dropped,
    is_after,
    label,
    recovered_after,
    span,
    unsplit,
)
from ..reasons import STANDS
from ..repetition import judged

EVENT = Reason("event", "the kernel reports trouble of a part")
DOUBTFUL_LINES = Reason("doubtful_lines", "lines that may be another program's words")
OUT_OF_ORDER = Reason("out_of_order", "the log's lines are in no order that their stamps tell")
SEVERAL_MACHINES = Reason("several_machines", "the log holds lines of several machines")

MOST_MACHINES = 8


def _device(context: Context, event: Facts, facts: Facts) -> Device:
    if event.get("pci"):
        return device_at(context, event["pci"], facts)
    parts = ("device", "volume", "controller", "server", "driver")
    name = next((event[part] for part in parts if event.get(part)), None)
    return {"name": name} if name else {}


def _since_then(context: Context, facts: Facts, case: Case, device: Device, last: Facts) -> str:
    """What shows that the trouble is over, or nothing."""
    smi, wanted = context.optional("nvidia_smi") or {}, context.expected.gpu_count or 0
    gpus = smi.get("gpus", [])
    whole = bool(wanted) and len(gpus) >= wanted and not smi.get("errors")
    if case.what in (*GSP_KINDS, NOT_LOADED, MISMATCH) and driver_loaded_after(facts, last):
        return "; since then the driver was loaded anew, which resets the GPU"
    if case.what in GSP_KINDS:
        actions = {str(gpu.get("recovery_action")).lower() for gpu in gpus if gpu.get("recovery_action")}
        if recovered_after(facts, last):
            return "; since then the driver asks for nothing more (Xid 154: None)"
        return "; nvidia-smi asks for no recovery now" if whole and actions == {"none"} else ""
    if case.name == "efa_admin" and last["kind"] != "admin":
        return "; all EFA devices are there now" if _all_efa(context) else ""
    if case.what == REFUSED:
        return "; the GPUs and EFA devices are there, by modules of their own" if whole and _all_efa(context) else ""
    if case.what == SLOT_EMPTY and whole and _all_efa(context):
        return "; all GPUs and EFA devices are there"
    if case.name in ("pcie_slot", "mlx5", "carrier", "network_failed", "network_reset", "ena_expired", "nfs"):
        return _came_back(facts, case, last)
    if case.what == MISMATCH:
        return "; the node's own nvidia-smi works with the driver: a container's libraries differ" if whole else ""
    if case.what not in (NOT_STARTED, UNUSABLE, NOT_LOADED, UNLOADED):
        return ""
    listed = device.get("uuid") and device.get("index") is not None if device.get("pci") else whole
    return "; nvidia-smi lists it now" if listed else ""


def _all_efa(context: Context) -> bool:
    return len((context.optional("efa_counters") or {}).get("devices", ())) >= (context.expected.efa_count or 1)


def _came_back(facts: Facts, case: Case, last: Facts) -> str:
    """What came back after the last line of trouble: a slot's link, a port's carrier, a device by its driver."""
    if case.name == "network_failed":
        done = [e for e in current(facts, "network_reset") if e["kind"] == "done" and e["pci"] == last["pci"]]
        return "; since then the driver reset it" if any(is_after(event, last) for event in done) else ""
    if case.what in (NETWORK_RESET, EXPIRED):
        done = [e for e in current(facts, "network_reset") if e["kind"] == "done" and e["pci"] == last.get("pci")]
        over = last.get("kind") == "done" or any(is_after(event, last) for event in done)
        return "; since then its reset was completed" if over else ""
    events = current(facts, case.name)
    after = events[[event is last for event in events].index(True) + 1 :]
    if case.what == SLOT_EMPTY:
        back = [e for e in after if e["kind"] in ("Link Up", "Card present") and e["slot"] == last["slot"]]
        return "; since then the slot has a device again" if back else ""
    if case.what == SILENT_SERVER:
        back = [e for e in after if e["kind"] == "answers" and e["server"] == last.get("server")]
        return "; since then it answers again" if back else ""
    if case.name == "carrier":
        gained = [e for e in after if e["kind"] == "Gained" and e["device"] == last["device"]]
        return "; since then it gained it again" if gained else ""
    mended = [e for e in after if e["kind"] == "recovered" and e["pci"] == last["pci"]]
    return "; since then the driver recovered it" if mended and case.status is Status.FAIL else ""


def _count(context: Context, facts: Facts, case: Case, lines: List[Facts], alone: bool) -> int:
    """How many events the lines stand for. A storm is thinned; a reset has a line for its cause and one for its end."""
    parts = {part: lines[0].get(part) for part in ("kind", "uncorrected") if part in lines[0]}
    hours = context.threshold("window_hours")
    if case.what == EXPIRED or (case.name == "mce" and "number" in lines[-1]) or case.name == "thermal":
        return max(int(line.get("number", 1)) for line in lines)
    if case.what == NETWORK_RESET:
        kinds = {line["kind"]: 0 for line in lines}
        for line in lines:
            kinds[line["kind"]] += 1
        return max(n + (dropped(facts, case.name, hours, kind=kind) if alone else 0) for kind, n in kinds.items())
    return sum(int(line.get("number", 1)) for line in lines) + (
        dropped(facts, case.name, hours, **parts) if alone else 0
    )


def _judged(context: Context, case: Case, count: int, lines: List[Facts]) -> Tuple[Status, float, str]:
    """Status, the limit that was compared with, and the words for what was too long."""
    longest = max((int(line.get("seconds", 0)) for line in lines), default=0)
    repeated = case.repeated
    limit = context.threshold(repeated.threshold) if repeated.threshold and repeated.alone is Status.WARN else 0
    most = context.threshold(case.longest) if case.longest else 0
    if case.longest and longest >= most:
        return Status.FAIL, limit, f", for {longest} s (limit {most:g} s)"
    return (judged(context, repeated, count) if limit else case.status), limit, ""


def _findings(context: Context, facts: Facts, case: Case, events: List[Facts]) -> Iterator[Finding]:
    groups: Dict[str, Tuple[Device, List[Facts]]] = {}
    for event in events:
        device = _device(context, event, facts)
        groups.setdefault(str(sorted(device.items(), key=str)), (device, []))[1].append(event)
    for device, lines in groups.values():
        count = _count(context, facts, case, lines, len(groups) == 1)
        total = _count(context, facts, case, events, True) if case.name in STALLS else count
        kind, told = lines[0].get("kind"), case.under(lines[0].get("driver"))
        status, limit, words = _judged(context, case, total, lines)
        status = told.status if told.status is Status.FAIL else status
        words = f", {total} in all{words}" if total != count else words
        over = _since_then(context, facts, case, device, lines[-1])
        if case.what == UNLOADED and (over or driver_loaded_after(facts, lines[-1])):
            continue  # as at every update
        stands = status is Status.WARN and not over and 0 < case.refused <= total
        eased = over and status is Status.FAIL and case.status is Status.FAIL
        yield context.because(
            Status.FAIL if stands else Status.WARN if eased else status,
            (STANDS if stands else EVENT).of(f"{told.name}_{kind}" if kind else told.name),
            f"{label(device)}: {told.what}, {count} times {span(lines)}{words}{over}",
            remedy=told.remedy,
            device=device,
            measured=total,
            expected=limit or 0,
            unit="events",
            evidence=[line["text"] for line in lines[:4]],
        )


def _doubtful(context: Context, facts: Facts, hours: float) -> Iterator[Finding]:
    """Lines that may be another program's words: UNKNOWN where they would block, WARN where they would warn."""
    for status in (Status.FAIL, Status.WARN):
        lines: List[Facts] = []
        standing: List[Facts] = []
        for case in CASES:
            found = [event for event in unsplit(facts, (case.name,), hours) if case.wanted(event)]
            number = sum(int(event.get("number", 1)) for event in found)
            judged_as = _judged(context, case, number, found)[0] if found else None
            if judged_as is Status.WARN and 0 < case.refused <= number:
                standing += found
            elif judged_as is status:
                lines += found
        if standing and status is Status.WARN:
            evidence = [line["text"] for line in standing[:4]]
            yield context.unknown(STANDS.of("doubtful"), f"{len(standing)} {UNSPLIT}", evidence=evidence)
        rest: Dict[str, Any] = {"evidence": [line["text"] for line in lines[:4]]}
        if lines and status is Status.FAIL:
            yield context.unknown(DOUBTFUL_LINES, f"{len(lines)} {UNSPLIT}", **rest)
        elif lines:
            yield context.warn(DOUBTFUL_LINES, f"{len(lines)} {UNSPLIT}", **rest)


def _mixed(context: Context, facts: Facts) -> Iterator[Finding]:
    """Lines in no order, and lines of several machines: what one of them logged says nothing of the other."""
    if facts.get("disorder"):
        yield context.unknown(
            OUT_OF_ORDER,
            "the log's lines are out of order, and their stamps do not tell it; do: give it as it was written",
        )
    machines = facts.get("machines") or []
    if machines:
        shown = ", ".join(machines[:MOST_MACHINES])
        yield context.unknown(
            SEVERAL_MACHINES, f"the log holds lines of several machines: {shown}; do: judge the log of each alone"
        )


def evaluate(context: Context) -> Iterator[Finding]:
    """One finding for each kind of trouble and device since the last boot."""
    facts = context.facts("kernel")
    hours = context.threshold("window_hours")
    findings: List[Finding] = []
    for case in CASES:
        events = [event for event in current(facts, case.name, hours) if case.wanted(event)]
        findings += _findings(context, facts, case, events)
    findings += _doubtful(context, facts, hours)
    findings += _mixed(context, facts)
    yield from findings
    if not any(finding.status in (Status.WARN, Status.FAIL, Status.UNKNOWN) for finding in findings):
        yield context.ok("no kernel errors since the last boot")


CHECK = Check(
    id="kernel_errors",
    order=80,
    title="Kernel errors",
    what="Memory and machine-check errors, lockups, hung tasks, disk and file system errors, failures of the NVIDIA "
    "and EFA drivers in the kernel log since the last boot. A CPU or task that stands still "
    "names the driver (nvidia, efa, ena, mlx5, nvme, lustre) in its call trace.",
    why="A host that kills processes, stalls or loses its disk takes the job down, hours in, on every node.",
    remedy="Hardware, disk: replace the instance. Lockup, read-only file system, driver: reboot. Else read the lines.",
    do="",
    out_of_service="Yes for what the kernel could not recover from, or what repeats. A single event of which no line "
    "shows that it passed keeps a job from starting, and ends none (reason `stands`); a recovered one warns.",
    first="journalctl -k -b -p warning",
    source="Linux kernel sources (mm, watchdog, nvme, ext4, xfs, edac, efa); Intel SDM 3; open GPU kernel modules",
    needs=("kernel",),
    wants=("nvidia_smi", "efa_counters"),
    tags=("host", "kernel"),
    thresholds=THRESHOLDS,
    repeated=tuple(case.repeated for case in CASES if case.status is Status.WARN),
    evaluate=evaluate,
)
