"""Is swap off?"""

from __future__ import annotations

from typing import Iterator

from ...model import Check, Finding, Reason, Remedy
from .. import skips
from ..context import Context

SWAP_ON = Reason("swap_on", "swap is on", Remedy.FIX_CONFIG)

KIB_PER_MIB = 1024


def evaluate(context: Context) -> Iterator[Finding]:
    """Any swap space is a warning: it slows a job before it harms it."""
    total = context.facts("meminfo").get("swap_total_kib")
    if total is None:
        yield context.skip(skips.ONLY_ADVICE.because("SwapTotal not printed"))
    elif total > 0:
        size = total // KIB_PER_MIB
        yield context.warn(SWAP_ON, f"{size} MiB of swap is on", measured=size, expected=0, unit="MiB")
    else:
        yield context.ok("swap is off", measured=0, expected=0, unit="MiB")


CHECK = Check(
    id="swap",
    order=480,
    title="Swap",
    what="That no swap space is in use.",
    why="A rank whose memory is swapped out stalls every other rank; kubelet refuses swap by default.",
    remedy="swapoff -a, and remove the swap entry from /etc/fstab.",
    out_of_service="No: it slows a job before it harms it.",
    source="Kubernetes kubelet failSwapOn default; proc_meminfo(5)",
    needs=("meminfo",),
    tags=("host", "mem"),
    skips=(skips.ONLY_ADVICE,),
    evaluate=evaluate,
)
