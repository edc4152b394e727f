"""Did the node boot just now?"""

from __future__ import annotations

from typing import Iterator

from ..context import Context
from ..model import Check, Finding, Threshold

SECONDS_PER_HOUR = 3600


def evaluate(context: Context) -> Iterator[Finding]:
    """A fresh boot explains other findings (services still starting) and shows a node that keeps rebooting."""
    seconds = context.facts("uptime")["uptime_s"]
    context.measure("uptime_s", seconds, "s")
    recent = context.threshold("recent_s")
    if seconds < recent:
        message = f"booted {seconds:.0f} s ago: services may still be starting; a reboot loop if nobody asked for it"
        yield context.info(message, measured=seconds, expected=recent, unit="s")
    else:
        yield context.ok(f"up for {seconds / SECONDS_PER_HOUR:.1f} h", measured=seconds, unit="s")


CHECK = Check(
    id="uptime",
    title="Uptime",
    what="How long ago the kernel started.",
    why="A node that boots again and again passes every check in between; its uptime gives it away.",
    remedy="If nobody rebooted the node, read the end of the last boot's log (journalctl -b -1 -e).",
    source="proc_uptime(5)",
    needs=("uptime",),
    tags=("host", "boot"),
    thresholds=(
        Threshold(
            "recent_s",
            300,
            "s",
            "uptime below which a boot counts as recent",
            "a P5 instance needs minutes until all services are up",
            0,
        ),
    ),
    evaluate=evaluate,
)
