"""Did the node boot just now?"""

from __future__ import annotations

from typing import Iterator

from ...model import Check, Finding, Reason, Threshold
from ..context import Context

MANY_BOOTS = Reason("many_boots", "the node was started several times")
JUST_BOOTED = Reason("just_booted", "the node was started a short time ago")

SECONDS_PER_HOUR = 3600


def evaluate(context: Context) -> Iterator[Finding]:
    """A fresh boot explains other findings (services still starting) and shows a node that keeps rebooting."""
    seconds = context.facts("uptime")["uptime_s"]
    context.measure("uptime_s", seconds, "s")
    recent, boots = context.threshold("recent_s"), _close_together(context)
    if boots >= context.threshold("boots"):
        message = f"booted {boots} times within an hour: a reboot loop"
        yield context.warn(MANY_BOOTS, message, measured=boots, expected=1, unit="boots")
    if seconds < recent:
        message = f"booted {seconds:.0f} s ago: services may still be starting; a reboot loop if nobody asked for it"
        yield context.info(JUST_BOOTED, message, measured=seconds, expected=recent, unit="s")
    else:
        yield context.ok(f"up for {seconds / SECONDS_PER_HOUR:.1f} h", measured=seconds, unit="s")


def _close_together(context: Context) -> int:
    """Boots in the hour up to the last one, that one included."""
    times = (context.optional("sysfs") or {}).get("boots") or []
    return sum(1 for time in times if times[-1] - time <= SECONDS_PER_HOUR)


CHECK = Check(
    id="uptime",
    order=690,
    title="Uptime",
    what="How long ago the kernel started, and how often within an hour.",
    why="A node that boots again and again passes every check in between; its uptime gives it away.",
    remedy="If nobody rebooted the node, read the end of the last boot's log (journalctl -b -1 -e).",
    out_of_service="No: a reboot loop warns, and the reason is another check's.",
    source="proc_uptime(5); utmp(5)",
    needs=("uptime",),
    wants=("sysfs",),
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
        Threshold(
            "boots",
            3,
            "boots",
            "boots within an hour that make a loop",
            "an update or a repair reboots once, at times twice",
            2,
            1000,
        ),
    ),
    informs=True,
    evaluate=evaluate,
)
