"""Has EC2 held back or dropped packets of the primary interface?"""

from __future__ import annotations

import re
from typing import Dict, Iterator

from ...model import Check, Finding, Reason, Threshold
from .. import skips
from ..context import Context

DROPPED = Reason("dropped", "packets were dropped for too many connections")
NONE_LEFT = Reason("none_left", "no further connection can be tracked")
EXCEEDED = Reason("exceeded", "packets were shaped or dropped by the instance's allowance")

_SUFFIX = "_allowance_exceeded"
CONNTRACK, AVAILABLE = "conntrack" + _SUFFIX, "conntrack_allowance_available"
SPOILED = Reason("spoiled", "a port that is no ENA device receives spoiled frames")
OTHER_MAKE = Reason("other_make", "the counters are not of an ENA device")
_SPOILED, _ONE_IN = (
    re.compile(r"(?:^|_)(?:crc|symbol|fcs|alignment|jabber|fragments?)_?(?:err(?:ors?)?)?(?:_|$)"),
    1_000_000,
)
ABSENT = "no counters of the primary interface (ethtool is not installed, or the node has no IPv4 default route)"


def evaluate(context: Context) -> Iterator[Finding]:
    """Counts since the driver was loaded: bursts are normal and inform, dropped connections are a warning."""
    facts = context.optional("ethtool")
    counters: Dict[str, int] = (facts or {}).get("counters", {})
    counted = {name[: -len(_SUFFIX)]: count for name, count in counters.items() if name.endswith(_SUFFIX)}
    for name, count in counted.items():
        context.measure(f"ena_{name}_exceeded", count, "packets")
    if not facts:
        yield context.skip(skips.NONE_HERE.because(ABSENT))
    elif not counted and "rx_packets" in counters:
        yield _of_another_make(context, counters)
    elif not counted:
        yield context.skip(
            skips.DRIVER_SILENT.because(
                "the primary interface counts no allowance: not an ENA device, or a driver before 2.2.10"
            )
        )
    else:
        yield from _judge(context, counters, counted)


def _of_another_make(context: Context, counters: Dict[str, int]) -> Finding:
    """A port that is no ENA device counts what the cable spoils: one bad frame of a million is no sound link."""
    bad = {name: count for name, count in counters.items() if count and _SPOILED.search(name)}
    worst, shown = max(bad.values(), default=0), ", ".join(f"{name} {count}" for name, count in bad.items())
    if worst * _ONE_IN > counters["rx_packets"]:
        return context.fail(SPOILED, f"frames spoiled on the link: {shown}", measured=worst, expected=0)
    return context.info(OTHER_MAKE, f"not an ENA device; frames spoiled on its link: {shown or 'none'}", measured=worst)


def _judge(context: Context, counters: Dict[str, int], counted: Dict[str, int]) -> Iterator[Finding]:
    refused, limit, left = counters.get(CONNTRACK, 0), context.threshold("conntrack"), counters.get(AVAILABLE)
    rest = {"measured": refused, "expected": limit, "unit": "packets"}
    if refused >= limit:
        message = f"{refused} packets dropped because the instance tracked all the connections it may"
        yield context.warn(DROPPED, message, **rest)
    elif left == 0:
        yield context.warn(NONE_LEFT, "no further connection can be tracked: new ones are dropped", **rest)
    over = {name: count for name, count in counted.items() if count and name != "conntrack"}
    total = sum(over.values())
    if over:
        shown = ", ".join(f"{name} {count}" for name, count in over.items())
        message = f"packets queued or dropped at an allowance since boot: {shown}; only growth during a job counts"
        yield context.info(EXCEEDED, message, measured=total, unit="packets")
    elif refused < limit and left != 0:
        yield context.ok(f"no packet over an allowance: {', '.join(counted)}", measured=0, expected=0, unit="packets")


CHECK = Check(
    id="ena_allowance",
    order=730,
    title="ENA allowances",
    what="Packets queued or dropped at EC2's allowances for bandwidth, packet rate, connections, link-local traffic.",
    why="Checkpoints, S3 and FSx go over this interface. Over its allowance they crawl; over the tracked connections "
    "new ones hang.",
    remedy="Connections: fewer of them, or untracked security group rules. Bandwidth: spread the load over time.",
    out_of_service="No: packets over an allowance are slow traffic, not a fault of the node.",
    first="ethtool -S ens5 | grep allowance",
    source="AWS EC2 user guide, monitor network performance for ENA",
    # sysfs stands for "the node was asked": many have no ethtool.
    needs_any=("ethtool", "sysfs"),
    tags=("host", "network"),
    thresholds=(
        Threshold(
            "conntrack",
            1,
            "packets",
            "packets dropped for lack of connection tracking that are worth a warning",
            "each is a connection that hung; AWS names no tolerable number",
            1,
            1000000000,
        ),
    ),
    skips=(skips.NONE_HERE, skips.DRIVER_SILENT),
    informs=True,
    evaluate=evaluate,
)
