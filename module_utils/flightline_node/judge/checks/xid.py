"""Did the driver report an Xid that takes the GPU or the node out of service?"""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, Mapping, Optional, Set, Tuple

from ...know.catalog import xid as catalogue
from ...model import BLOCKING, RANK, Facts, Finding, Reason, Remedy, Repeated, Status, Threshold
from .. import skips, xid_policy
from ..context import Context
from ..kernel_history import (
    UNSPLIT,
    before_boot,
    current,
    device_at,
    driver_loaded_after,
    dropped,
    label,
    pci_key,
    span,
    unsplit,
)
from ..repetition import judged
from ..xid_policy import RECOVERY, Decision
from .common import OF_GPU, gpu_check, gpus_seen, version_tuple

REPEATING = frozenset({"RESTART_APP", "WORKFLOW_XID_45", "IGNORE"})
Groups = Dict[Tuple[int, str], List[Facts]]

REPEATED: Mapping[int, Repeated] = {
    63: Repeated("Xid 63, memory rows remapped, of which none waits", Status.WARN, "memory_count", "GPU"),
    92: Repeated("Xid 92, many corrected memory errors", Status.WARN, "memory_count", "GPU"),
    94: Repeated("Xid 94, contained memory errors, after which none waits", Status.WARN, "memory_count", "GPU"),
}
CLEAN_UP = 45
XID = Reason("xid", "the driver reported an Xid", device="GPU")
BAD_POLICY = Reason("bad_policy", "the site's xid_policy cannot be read", Remedy.FIX_CONFIG)
UNREAD_LINES = Reason("unread_lines", "Xid lines of the kernel log could not be read")
DOUBTFUL_LINES = Reason("doubtful_lines", "Xids that may be another program's words")
EARLIER_BOOTS = Reason("earlier_boots", "Xids of earlier boots, which the reboot reset")
_BLAMED = re.compile(r"caused by previous Xid (\d{1,4})\b")
"""How a clean-up names the Xid that it follows, on the same GPU."""


def _grouped(events: List[Facts]) -> Groups:
    groups: Groups = {}
    for event in events:
        groups.setdefault((event["code"], pci_key(event["pci"])), []).append(event)
    return groups


def _driver_major(context: Context, facts: Facts) -> Optional[int]:
    smi = context.optional("nvidia_smi") or {}
    version = version_tuple(str(smi.get("driver_version") or facts.get("driver_version") or ""))
    return version[0] if version else None


def _cleared(events: List[Facts], all_events: List[Facts], decision: Decision) -> bool:
    """Did the driver withdraw its wish for a reset of this GPU after the last of these Xids?"""
    after = all_events[all_events.index(events[-1]) + 1 :]
    words = [e for e in after if e["code"] == RECOVERY and pci_key(e["pci"]) == pci_key(events[0]["pci"])]
    return bool(words) and words[-1].get("recovery_value") == 0 and decision.remedy is Remedy.RESET_GPU


def _reloaded(events: List[Facts], facts: Facts, decision: Decision) -> bool:
    return decision.remedy is Remedy.RESET_GPU and driver_loaded_after(facts, events[-1])


def _repeats(context: Context, code: int, events: List[Facts], groups: Groups) -> bool:
    """An application's fault moves with the application; one that stays on a single GPU points at the GPU."""
    entry = catalogue.lookup(code)
    alone = sum(1 for other, _ in groups if other == code) == 1 and gpus_seen(context) != 1
    repeating = entry is not None and entry.bucket in REPEATING
    return alone and repeating and xid_policy.incidents(events) >= context.threshold("repeat_count")


def _unseen_causes(facts: Facts, key: Tuple[int, str], groups: Groups) -> Set[int]:
    """Xids that the driver's clean-up of this GPU names and whose own lines the log no longer has."""
    if key[0] != CLEAN_UP:
        return set()
    seen = {event["code"] for event in current(facts, "xids") if pci_key(event["pci"]) == key[1]}
    named = [_BLAMED.search(event["detail"]) for event in groups[key]]
    return {int(match.group(1)) for match in named if match} - seen


def _by_cause(code: int, policy: Dict[int, Decision]) -> Decision:
    """What an Xid means of which only the number is known."""
    why = f"the Xid {code} that caused it is no longer in the log"
    if code in xid_policy.NVLINK5 or code == RECOVERY:
        lost = f"{why}: whether it was fatal stood in its own line"
        return policy.get(code) or Decision(Status.UNKNOWN, Remedy.INVESTIGATE, lost, code)
    cause = policy.get(code) or xid_policy.decide(code, [], None, None)
    return Decision(cause.status, cause.remedy, f"{why}: {cause.why}" if cause.why else why, code)


def _decision(
    context: Context, facts: Facts, key: Tuple[int, str], groups: Groups, policy: Dict[int, Decision]
) -> Decision:
    code, pci = key
    events, said = groups[key], groups.get((RECOVERY, pci))
    recovery = xid_policy.recovery_of(said[-1]) if said else None
    decision = xid_policy.decide(code, events, recovery, _driver_major(context, facts))
    causes = [_by_cause(cause, policy) for cause in sorted(_unseen_causes(facts, key, groups))]
    decision = max((decision, *causes), key=lambda one: RANK[one.status])
    if decision.status is Status.FAIL and _cleared(events, facts["xids"], decision):
        return Decision(
            Status.WARN,
            Remedy.INVESTIGATE,
            f"{decision.why}; since then the driver asks for nothing more (Xid 154: None)",
        )
    if decision.status is Status.FAIL and _reloaded(events, facts, decision):
        why = f"{decision.why}; since then the driver was loaded anew, which resets the GPU"
        return Decision(Status.WARN, Remedy.INVESTIGATE, why)
    if decision.status is Status.INFO and _repeats(context, code, events, groups):
        return Decision(Status.WARN, Remedy.INVESTIGATE, "keeps coming on this GPU and on no other: suspect the GPU")
    decision = xid_policy.by_state(decision, code, events[-1]["pci"], context.optional("nvidia_smi") or {})
    if code in REPEATED:
        count = len(events) + dropped(facts, "xids", context.threshold("window_hours"), code=code, pci=events[0]["pci"])
        if judged(context, REPEATED[code], count) is Status.FAIL:
            return Decision(Status.FAIL, Remedy.REPLACE, "keeps coming: the GPU's memory is failing")
    return decision


def _finding(
    context: Context, facts: Facts, key: Tuple[int, str], groups: Groups, policy: Dict[int, Decision]
) -> Finding:
    code, events = key[0], groups[key]
    entry, device = catalogue.lookup(code), device_at(context, events[0]["pci"], facts)
    decision = _decision(context, facts, key, groups, policy)
    why = decision.why
    if code in policy:
        was, decision = decision.status, policy[code]
        why = f"site policy makes it {decision.status} (was {was}){': ' + decision.why if decision.why else ''}"
    hours = context.threshold("window_hours")
    count = len(events) + dropped(facts, "xids", hours, code=code, pci=events[0]["pci"])
    name = (
        f"{entry.mnemonic}: {entry.meaning}" if entry and entry.meaning else entry.mnemonic if entry else "unknown code"
    )
    message = f"{label(device)}: Xid {code} ({name}), {count} {'line' if count == 1 else 'lines'} {span(events)}"
    texts = [event["text"] for event in [*events[:2], *events[2:][-2:]]]
    return context.finding(
        decision.status,
        message + (f"; {why}" if why else ""),
        remedy=decision.remedy,
        device=device,
        measured=count,
        expected=0,
        unit="Xids",
        evidence=texts,
        reason=skips.POLICY.id if decision.status is Status.SKIP else XID.of(decision.cause or code).id,
    )


def evaluate(context: Context) -> Iterator[Finding]:
    """One finding for each code and GPU since the last boot; earlier ones are mentioned."""
    facts = context.facts("kernel")
    hours = context.threshold("window_hours")
    groups = _grouped(current(facts, "xids", hours))
    statuses: Set[Status] = set()
    policy, wrong = xid_policy.read_overrides(context.options)
    for message in wrong:
        yield context.unknown(BAD_POLICY, message)
    unread = current(facts, "unread_xids")
    if unread:
        text = "the kernel log has Xid lines that could not be read"
        yield context.unknown(UNREAD_LINES, text, evidence=[e["text"] for e in unread])
    doubtful = [*_doubtful(context, facts, hours, policy)]
    yield from doubtful
    for key in groups:
        finding = _finding(context, facts, key, groups, policy)
        statuses.add(finding.status)
        yield finding
    old = [event for event in before_boot(facts, "xids") if _fails(event["code"])]
    if old:
        text = f"{len(old)} Xids of earlier boots, not judged: the reboot reset the GPUs"
        yield context.info(EARLIER_BOOTS, text, evidence=[e["text"] for e in old])
    if not (statuses - {Status.SKIP, Status.INFO} or wrong or unread or doubtful):
        what = "no Xid that speaks against a GPU" if Status.INFO in statuses else "no Xid"
        yield context.ok(f"{what} since the last boot" + (f", in the log's last {hours:g} hours" if hours else ""))


def _doubtful(context: Context, facts: Facts, hours: float, policy: Dict[int, Decision]) -> Iterator[Finding]:
    """Xids that may be another program's words: UNKNOWN where they would take the GPU out, else as they are."""
    events = unsplit(facts, ("xids", "unread_xids"), hours)
    major = _driver_major(context, facts)
    worst: List[Facts] = []
    other: List[Facts] = []
    for event in events:
        status = Status.FAIL
        if "code" in event:
            status = (policy.get(event["code"]) or xid_policy.decide(event["code"], [event], None, major)).status
        if status in BLOCKING:
            worst.append(event)
        elif status is Status.WARN:
            other.append(event)
    if worst:
        yield context.unknown(DOUBTFUL_LINES, f"{len(worst)} Xid {UNSPLIT}", evidence=[e["text"] for e in worst[:4]])
    if other:
        yield context.warn(DOUBTFUL_LINES, f"{len(other)} Xid {UNSPLIT}", evidence=[e["text"] for e in other[:4]])


def _fails(code: int) -> bool:
    entry = catalogue.lookup(code)
    return entry is not None and entry.status == Status.FAIL


CHECK = gpu_check(
    id="xid",
    order=50,
    title="Xid errors",
    what="NVRM Xid lines of the kernel log since the last boot, judged by NVIDIA's catalogue.",
    why="An Xid is how the driver says that a GPU, its memory or its links failed; the next job fails the same way.",
    remedy="Do what the finding says: restart the job, reset the GPU, reboot, or replace the instance. A reboot "
    "clears the record; an Xid that comes back after it means a broken part. Application errors need nothing.",
    do="",
    out_of_service="By NVIDIA's catalogue: yes for a reset, reboot or replacement, no where it blames the program.",
    first="journalctl -k -b | grep Xid",
    source="NVIDIA Xid catalogue (docs.nvidia.com/deploy/xid-errors), read 2026-11",
    needs=("kernel",),
    wants=("nvidia_smi",),
    tags=("gpu", "kernel"),
    thresholds=(
        Threshold(
            "window_hours",
            0,
            "h",
            "how far back from the log's last line Xids count; 0: to the last boot",
            "a GPU stays as it is until a reset or a reboot",
            0,
            8760,
        ),
        Threshold(
            "repeat_count",
            3,
            "incidents",
            "application Xids on one GPU alone that point at the GPU",
            "NVIDIA's workflows for Xid 13 and 31: a repeat on the same GPU calls for diagnostics; no number is given",
            2,
            1000,
        ),
        Threshold(
            "memory_count",
            5,
            "lines",
            "Xids 63, 92 or 94 of one GPU since boot that ask for another GPU",
            "NVIDIA: one is survived by restarting the program; AWS replaces a GPU whose memory errors come again",
            1,
            100000,
        ),
    ),
    repeated=tuple(REPEATED.values()),
    skips=(*OF_GPU, skips.POLICY),
    evaluate=evaluate,
)
