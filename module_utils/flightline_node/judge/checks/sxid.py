"""Did an NVSwitch report an error?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

from ...know.catalog import sxid as catalogue
from ...model import Facts, Finding, Reason, Remedy, Status, Threshold
from ..context import Context
from ..kernel_history import UNSPLIT, current, driver_loaded_after, dropped, span, unsplit
from ..reasons import STANDS
from .common import gpu_check

SXID = Reason("sxid", "an NVSwitch reported an SXid", device="NVSwitch")
UNREAD_LINES = Reason("unread_lines", "SXid lines could not be read")
DOUBTFUL_LINES = Reason("doubtful_lines", "lines that may be another program's words")
VERSION_DIFFERS = Reason(
    "version_differs", "Fabric Manager and driver are of different versions", Remedy.UPDATE_SOFTWARE, "NVSwitch"
)
STARTED_LATER = Reason("started_later", "an NVSwitch could not be started and later was", device="NVSwitch")
COULD_NOT_START = Reason("could_not_start", "an NVSwitch could not be started", Remedy.REBOOT, "NVSwitch")

ALL_RESET = "always_fatal"


def _decide(code: int, events: List[Facts]) -> Tuple[Status, Remedy, str]:
    """The word in the line goes before the table."""
    words = {event.get("fatal") for event in events}
    entry = catalogue.lookup(code)
    if True in words or (False not in words and entry and entry.fatal):
        remedy = Remedy.REBOOT if entry and entry.listed == ALL_RESET else Remedy.RESET_GPU
        return Status.FAIL, remedy, "Fatal by its own word" if True in words else "fatal by NVIDIA's tables"
    if entry and entry.quiet:
        return Status.INFO, Remedy.NONE, "not fatal, nothing to do"
    if words == {None} and entry and entry.action in catalogue.FATAL_ACTIONS:
        return Status.FAIL, Remedy.RESET_GPU, "no word in the line, and NVIDIA has the fabric reset for it"
    if entry and entry.action == catalogue.PARTITIONS:
        return (
            Status.WARN,
            Remedy.FIX_CONFIG,
            "not fatal, but traffic is refused: Fabric Manager's partitions are wrong",
        )
    why = "not fatal" if False in words else "no word in the line"
    return (
        Status.WARN,
        Remedy.INVESTIGATE,
        why + (f", table says {entry.action}" if entry else ", not in NVIDIA's tables"),
    )


def evaluate(context: Context) -> Iterator[Finding]:
    """One finding for each code and switch since the last boot."""
    facts = context.facts("kernel")
    hours = context.threshold("window_hours")
    groups: Dict[Tuple[int, str], List[Facts]] = {}
    for event in current(facts, "sxids", hours):
        groups.setdefault((event["code"], event["pci"]), []).append(event)
    for (code, pci), events in groups.items():
        status, remedy, why = _decide(code, events)
        entry, count = catalogue.lookup(code), len(events) + dropped(facts, "sxids", hours, code=code, pci=pci)
        links = sorted({event["link"] for event in events if event.get("link") is not None})
        where = f"nvidia-nvswitch{events[0]['switch']}" + (f" link {', '.join(map(str, links[:8]))}" if links else "")
        message = (
            f"{where}: SXid {code} ({entry.name if entry else 'unknown code'}), {count} times {span(events)}; {why}"
        )
        stands = remedy is Remedy.FIX_CONFIG
        device = {"name": f"nvidia-nvswitch{events[0]['switch']}", "pci": pci}
        yield context.because(
            Status.FAIL if stands else status,
            (STANDS if stands else SXID).of(code),
            message,
            remedy=remedy,
            device=device,
            measured=count,
            expected=0,
            unit="SXids",
            evidence=[event["text"] for event in events[:4]],
        )
    unread = current(facts, "unread_sxids")
    if unread:
        yield context.unknown(
            UNREAD_LINES, "the kernel log has SXid lines that could not be read", evidence=[e["text"] for e in unread]
        )
    doubtful = unsplit(facts, ("sxids", "unread_sxids", "nvswitch_failed"), hours)
    if doubtful:
        yield context.unknown(
            DOUBTFUL_LINES, f"{len(doubtful)} NVSwitch {UNSPLIT}", evidence=[e["text"] for e in doubtful[:4]]
        )
    broken = [*_not_started(context, facts, hours)]
    yield from broken
    if not (groups or unread or broken or doubtful):
        yield context.ok("no SXid since the last boot")


def _not_started(context: Context, facts: Facts, hours: float) -> Iterator[Finding]:
    """Switches that the driver could not start or no longer listens to, and a Fabric Manager of another version."""
    groups: Dict[Tuple[bool, str], List[Facts]] = {}
    for event in current(facts, "nvswitch_failed", hours):
        name = f"nvidia-nvswitch{event.get('switch', '')}"
        groups.setdefault((bool(event.get("version")), name), []).append(event)
    for (version, name), events in groups.items():
        rest: Dict[str, Any] = {"device": {"name": name}, "evidence": [event["text"] for event in events[:4]]}
        if version:
            message = (
                f"{name}: Fabric Manager asked in another version than the driver's, wanted the same {span(events)}"
            )
            yield context.warn(VERSION_DIFFERS, message, **rest)
        elif driver_loaded_after(facts, events[-1]):
            message = f"{name}: the driver could not start it {span(events)}; since then it was loaded anew"
            yield context.warn(STARTED_LATER, message, **rest)
        else:
            message = f"{name}: the driver could not start it, or gave up on it, {span(events)}"
            yield context.fail(COULD_NOT_START, message, measured=len(events), expected=0, **rest)


CHECK = gpu_check(
    id="sxid",
    order=60,
    title="NVSwitch errors (SXid)",
    what="SXid lines of the kernel log since the last boot (the word Fatal or Non-fatal in the line decides), and "
    "NVSwitches that the driver could not start.",
    why="A fatal NVSwitch error breaks the paths between GPUs; collectives hang or fail on every GPU of the node.",
    remedy="Fatal: reset all GPUs and switches together, on EC2 by a reboot. If it comes back, replace the instance.",
    do="",
    out_of_service="Yes when fatal, or when it repeats; a non-fatal one warns. What shows wrong partitions keeps a job "
    "from starting, and ends none (reason `stands`).",
    first="journalctl -k -b | grep SXid",
    source="NVIDIA Fabric Manager User Guide DU-09883, SXid lists; open GPU kernel modules (linux_nvswitch.c)",
    needs=("kernel",),
    tags=("gpu", "nvlink", "kernel"),
    thresholds=(
        Threshold(
            "window_hours",
            0,
            "h",
            "how far back from the log's last line SXids count; 0: to the last boot",
            "a switch stays as it is until a reset or a reboot",
            0,
            8760,
        ),
    ),
    evaluate=evaluate,
)
