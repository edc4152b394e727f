"""Has an EFA device counted errors?"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

from ...model import Check, Finding, Reason
from .. import skips
from ..context import Context
from .efa_count import no_efa

COUNTERS_UNREAD = Reason("counters_unread", "counters could not be read")
COUNTED = Reason("counted", "errors since the last device reset")

ERRORS: Tuple[str, ...] = (
    "rx_drops",
    "rdma_read_wr_err",
    "rdma_write_wr_err",
    "retrans_timeout_events",
    "unresponsive_remote_events",
    "impaired_remote_conn_events",
)
"""Counters that stay at zero on a quiet healthy network. retrans_pkts also grows under ordinary congestion."""


def _bad_values(devices: Dict[str, Dict[str, Any]]) -> List[str]:
    return [
        f"{name} {counter}: {counters[counter]}"
        for name, counters in devices.items()
        for counter in ERRORS
        if counter in counters and not isinstance(counters[counter], int)
    ]


def evaluate(context: Context) -> Iterator[Finding]:
    """One sample cannot date an error: the counters survive reboots. So it informs and never fails."""
    devices = context.facts("efa_counters")["devices"]
    known = [counter for counter in ERRORS if any(counter in counters for counters in devices.values())]
    unreadable = _bad_values(devices)
    if not devices:
        yield context.skip(skips.NO_EFA_DEVICE.because("no EFA device with counters: see efa_count"))
    elif unreadable:
        yield context.unknown(COUNTERS_UNREAD, f"{len(unreadable)} counters could not be read", evidence=unreadable)
    elif not known:
        yield context.skip(skips.DRIVER_SILENT.because("this EFA driver has no error counters (2.17.0 and later have)"))
    else:
        totals = {counter: sum(counters.get(counter, 0) for counters in devices.values()) for counter in known}
        for counter, total in totals.items():
            context.measure(f"efa_{counter}", total, "events")
        yield from _judge(context, devices, totals)


def _judge(context: Context, devices: Dict[str, Dict[str, Any]], totals: Dict[str, int]) -> Iterator[Finding]:
    rest = {"measured": sum(totals.values()), "expected": 0, "unit": "events"}
    if not any(totals.values()):
        yield context.ok(f"no error counted by {len(devices)} EFA devices", **rest)
        return
    seen = ", ".join(f"{counter} {total}" for counter, total in totals.items() if total)
    lines = [
        f"{name}: " + ", ".join(f"{counter} {counters[counter]}" for counter in totals if counters.get(counter))
        for name, counters in devices.items()
        if any(counters.get(counter) for counter in totals)
    ]
    yield context.info(
        COUNTED, f"errors since the last device reset: {seen}; only growth counts", evidence=lines, **rest
    )


CHECK = Check(
    id="efa_counters",
    order=770,
    title="EFA error counters",
    what="Receive drops, failed RDMA requests, retransmission timeouts and unresponsive peers, per EFA device.",
    why="Drops and timeouts stall collectives for seconds. The totals are kept so that a later run can see growth.",
    remedy="Compare with the previous run. Growth on one node: replace it. On many: security groups, placement.",
    do="Compare with the previous run. On many: security groups, placement.",
    out_of_service="No by itself: counters outlive jobs and reboots; much warns.",
    first="grep -H . /sys/class/infiniband/rdmap*/ports/1/hw_counters/*",
    source="AWS EFA user guide, monitoring; amzn-drivers EFA hw_counters",
    needs=("efa_counters",),
    tags=("efa", "network"),
    applies=no_efa,
    skips=(skips.NO_EFA, skips.NO_EFA_DEVICE, skips.DRIVER_SILENT),
    informs=True,
    evaluate=evaluate,
)
