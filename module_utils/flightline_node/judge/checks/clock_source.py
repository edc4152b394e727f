"""Does the kernel tell the time by a clock that is cheap to read?"""

from __future__ import annotations

from typing import Iterator

from ...model import Check, Finding, Reason, Remedy
from .. import skips
from ..context import Context
from .common import is_broken

OTHER_SOURCE = Reason("other_source", "the clock source is not the wanted one", Remedy.FIX_CONFIG)
SLOW_SOURCE = Reason("slow_source", "the clock source is slow to read", Remedy.FIX_CONFIG)

GOOD = frozenset({"tsc", "kvm-clock", "arch_sys_counter"})
"""Read without leaving user space (vDSO): x86 on Nitro, and Arm."""


def evaluate(context: Context) -> Iterator[Finding]:
    """The site's word, else one of the clocks that programs can read without a system call."""
    found = context.facts("sysfs").get("clocksource") or {}
    current, wanted = found.get("current"), context.expected.clock_source
    rest = {"measured": current, "expected": wanted or "tsc or kvm-clock"}
    if not current or is_broken(current):
        yield context.skip(
            skips.ONLY_ADVICE.because(f"the clock source could not be read: {current or 'not in the outputs'}")
        )
    elif wanted and current != wanted:
        yield context.fail(OTHER_SOURCE, f"the clock source is {current}, the inventory wants {wanted}", **rest)
    elif not wanted and current not in GOOD:
        could = [name for name in str(found.get("available") or "").split() if name in GOOD]
        also = f"; {' or '.join(could)} can be chosen" if could else "; the kernel has given up the fast ones"
        yield context.warn(SLOW_SOURCE, f"the clock source {current} is slow to read{also}", **rest)
    else:
        yield context.ok(f"clock source {current}", **rest)


CHECK = Check(
    id="clock_source",
    order=620,
    title="Clock source",
    what="The clock by which the kernel tells the time: tsc or kvm-clock on x86, the architected counter on Arm.",
    why="With xen, hpet or acpi_pm each look at the clock is a system call or worse, and training asks it often.",
    remedy="echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource, and clocksource=tsc at boot. "
    "If the kernel marked tsc unstable, replace the instance.",
    out_of_service="No: a slow clock costs some percent. Yes where the site names one.",
    source="AWS re:Post, manage the clock source of EC2 Linux instances (tsc or kvm-clock on Nitro)",
    needs=("sysfs",),
    tags=("host", "clock"),
    skips=(skips.ONLY_ADVICE,),
    evaluate=evaluate,
)
