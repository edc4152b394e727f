"""Did the kernel say anything in an error's shape that no rule knows?"""

from __future__ import annotations

from typing import Iterator

from ...model import Check, Finding, Threshold
from ..context import Context
from ..kernel_history import current
from ..unread import not_understood


def evaluate(context: Context) -> Iterator[Finding]:
    """For lines since the last boot that speak of failure, no rule classes and no healthy machine prints."""
    facts = context.facts("kernel")
    found = current(facts, "unread", context.threshold("window_hours"))
    ledger = facts["ledger"]
    seen = (
        f"{ledger['lines']} lines: {ledger['classed']} of known kinds, {ledger['harmless']} that healthy machines print"
    )
    if not found:
        yield context.ok(f"{seen}; the rest speaks of no failure", measured=0, unit="lines")
        return
    yield not_understood(context, found)


CHECK = Check(
    id="unread_lines",
    order=85,
    title="Kernel lines that nobody knows",
    what="Every line of the kernel log since the last boot that speaks of failure, or was printed at priority err or "
    "worse, and that neither a rule nor the table of what healthy machines print explains. In the first 30 s of a "
    "boot only of memory, CPU, file system, a device on the PCI bus and the parts that training needs.",
    why="Rules know the faults of yesterday. A new driver, a new part or a new kernel says what is wrong in new words.",
    remedy="Read the lines. What is harmless on your machines: a waiver until the next release knows it. All of them, "
    "grouped: `flightline judge BUNDLE --unread`.",
    do="",
    out_of_service="Yes, until a person has read them: an error that nobody understands is no evidence of health; "
    "FAIL where a part that training needs says itself that it failed.",
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
