"""Did a PCI Express link report errors (AER)?"""

from __future__ import annotations

from typing import Dict, Iterator, List, Mapping, Tuple

from ...model import Check, Facts, Finding, Reason, Remedy, Repeated, Status, Threshold
from ..context import Context
from ..kernel_history import UNSPLIT, current, device_at, dropped, label, pci_key, span, unsplit
from ..reasons import STANDS
from ..repetition import judged

ERRORS = Reason("errors", "the kernel reports PCIe errors")
DOUBTFUL_LINES = Reason("doubtful_lines", "lines that may be another program's words")

STORM = 3

REPEATED: Mapping[str, Repeated] = {
    "nonfatal": Repeated("PCIe errors that were not corrected", Status.WARN, "uncorrected_count", refused=1),
    "unrecovered": Repeated(
        "PCIe errors after which the driver could not recover", Status.WARN, "uncorrected_count", refused=1
    ),
}


def _by_device(events: List[Facts]) -> Dict[Tuple[str, str], List[Facts]]:
    """By address and severity. The root port's report and the device's own line are one error: the latter is kept."""
    groups: Dict[Tuple[str, str], List[Facts]] = {}
    for shape in ("detail", "report"):
        told = set(groups)
        for event in events:
            key = (pci_key(event["pci"]), event["severity"])
            if event["shape"] == shape and key not in told:
                groups.setdefault(key, []).append(event)
    return groups


def _storm(events: List[Facts]) -> bool:
    """Did several come within a second, or without any time that would tell them apart?"""
    for first, last in zip(events, events[STORM - 1 :]):
        times = [one.get("uptime_s", one["time"]) for one in (first, last)]
        if times[0] is None or times[0] == times[1]:
            return True
        if isinstance(times[0], float) and isinstance(times[1], float) and times[1] - times[0] < 1:
            return True
    return False


def _judge(context: Context, severity: str, count: int) -> Tuple[Status, Remedy, str]:
    limit = context.threshold("corrected_count")
    if severity == "fatal":
        return Status.FAIL, Remedy.REBOOT, "fatal PCIe errors: data was lost on the link"
    if severity in REPEATED:
        status = judged(context, REPEATED[severity], count)
        remedy = Remedy.REBOOT if status is Status.FAIL else Remedy.INVESTIGATE
        return status, remedy, REPEATED[severity].what
    if count >= limit:
        return Status.WARN, Remedy.INVESTIGATE, f"corrected PCIe errors, {limit:g} or more: the link is marginal"
    return Status.INFO, Remedy.NONE, "corrected PCIe errors: no data was lost"


def evaluate(context: Context) -> Iterator[Finding]:
    """One finding for each device and severity since the last boot."""
    facts = context.facts("kernel")
    hours = context.threshold("window_hours")
    groups, statuses = _by_device(current(facts, "aer", hours)), set()
    for (_, severity), events in groups.items():
        pci = events[0]["pci"]
        device = device_at(context, pci, facts)
        count = len(events) + dropped(facts, "aer", hours, pci=pci, severity=severity)
        status, remedy, what = _judge(context, severity, count)
        statuses.add(status)
        stands = status is Status.WARN and severity in REPEATED
        if severity == "corrected" and _storm(events):
            stands, what = True, "a storm of corrected PCIe errors: the link is marginal"
        yield context.because(
            Status.FAIL if stands else status,
            (STANDS if stands else ERRORS).of(severity),
            f"{label(device)}: {what}, {count} times {span(events)}",
            remedy=remedy,
            device=device,
            measured=count,
            expected=0 if severity != "corrected" else f"under {context.threshold('corrected_count'):g}",
            unit="errors",
            evidence=[event["text"] for event in events[:4]],
        )
    doubtful = [event for event in unsplit(facts, ("aer",), hours) if event["severity"] != "corrected"]
    if any(event["severity"] == "fatal" for event in doubtful):
        yield context.unknown(
            DOUBTFUL_LINES, f"{len(doubtful)} PCIe {UNSPLIT}", evidence=[e["text"] for e in doubtful[:4]]
        )
    elif doubtful:
        evidence = [event["text"] for event in doubtful[:4]]
        yield context.unknown(STANDS.of("doubtful"), f"{len(doubtful)} PCIe {UNSPLIT}", evidence=evidence)
    if not (statuses - {Status.INFO} or doubtful):
        yield context.ok(f"no {'uncorrected ' if groups else ''}PCIe error since the last boot")


CHECK = Check(
    id="pcie_aer",
    order=70,
    title="PCIe errors (AER)",
    what="Advanced error reports of PCI Express devices in the kernel log since the last boot.",
    why="A link that loses or resends packets slows every transfer of its GPU or network card, or drops the device.",
    remedy="Fatal: reboot, and replace the instance if it comes back. Many corrected: watch the device's bandwidth.",
    do="Many corrected: watch the device's bandwidth.",
    out_of_service="Yes for errors that were not corrected (under ten: before a job, reason `stands`); corrected ones "
    "warn, and three within a second keep a job from starting.",
    first="journalctl -k -b | grep -i aer",
    source="Linux Documentation/PCI/pcieaer-howto.rst; PCI Express base specification, error classes",
    needs=("kernel",),
    wants=("nvidia_smi",),
    tags=("gpu", "network", "pcie", "kernel"),
    thresholds=(
        Threshold(
            "window_hours",
            0,
            "h",
            "how far back from the log's last line errors count; 0: to the last boot",
            "counts are since boot",
            0,
            8760,
        ),
        Threshold(
            "corrected_count",
            100,
            "errors",
            "corrected errors of one device that are worth a warning",
            "a sound link corrects a handful in months, a marginal one hundreds a day; no limit is published",
            1,
            1000000000,
        ),
        Threshold(
            "uncorrected_count",
            10,
            "errors",
            "errors of one device that were not corrected and block the node",
            "one comes of a signal at its limit; a link that has ten loses packets again; no limit is published",
            1,
            100000,
        ),
    ),
    repeated=tuple(REPEATED.values()),
    evaluate=evaluate,
)
