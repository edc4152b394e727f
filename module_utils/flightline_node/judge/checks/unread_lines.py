"""Did the kernel say anything in an error's shape that no rule knows?"""

from __future__ import annotations

from typing import Iterator

from ...model import Check, Facts, Finding, Reason, Threshold
from ..context import Context
from ..kernel_history import current, when

NOT_UNDERSTOOD = Reason("not_understood", "a line in an error's shape that no rule knows")
SHOWN = 7


def _told(shape: Facts) -> str:
    """'3 times at T: the line'."""
    times = "once" if shape["count"] == 1 else f"{shape['count']} times"
    return f"{times}, first at {when(shape)}: {shape['text']}"


def evaluate(context: Context) -> Iterator[Finding]:
    """UNKNOWN for lines since the last boot that speak of failure, no rule classes and no healthy machine prints."""
    facts = context.facts("kernel")
    found = current(facts, "unread", context.threshold("window_hours"))
    ledger = facts["ledger"]
    seen = (
        f"{ledger['lines']} lines: {ledger['classed']} of known kinds, {ledger['harmless']} that healthy machines print"
    )
    if not found:
        yield context.ok(f"{seen}; the rest speaks of no failure", measured=0, unit="lines")
        return
    count = sum(shape["count"] for shape in found)
    worst = sorted(found, key=lambda shape: -int(shape["count"]))
    what = ("1 line" if count == 1 else f"{count} lines") + (f" of {len(found)} sorts" if len(found) > 1 else "")
    yield context.unknown(
        NOT_UNDERSTOOD,
        f"{what} in an error's shape that no rule knows: {found[0]['text'][:200]}",
        measured=count,
        expected=0,
        unit="lines",
        evidence=[_told(shape) for shape in worst[:SHOWN]],
    )


CHECK = Check(
    id="unread_lines",
    order=85,
    title="Kernel lines that nobody knows",
    what="Every line of the kernel log since the last boot that speaks of failure, or was printed at priority err or "
    "worse, and that neither a rule nor the table of what healthy machines print explains.",
    why="Rules know the faults of yesterday. A new driver, a new part or a new kernel says what is wrong in new words.",
    remedy="Read the lines. What is harmless on your machines: a waiver until the next release knows it. All of them, "
    "grouped: `flightline judge BUNDLE --unread`.",
    do="",
    out_of_service="Yes, until a person has read them: an error that nobody understands is no evidence of health.",
    first="journalctl -k -b -p err",
    source="The print statements of Linux and of the drivers: know/catalog/harmless.py; docs/decisions/kernel-log.md",
    needs=("kernel",),
    tags=("host", "kernel"),
    thresholds=(
        Threshold(
            "window_hours",
            0,
            "h",
            "how far back from the log's last line such lines count; 0: to the last boot",
            "what broke stays broken until a reboot",
            0,
            8760,
        ),
    ),
    evaluate=evaluate,
)
