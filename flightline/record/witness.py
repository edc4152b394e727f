"""What the control side sees of an answer by itself: when it was given, and whether it names what it counted. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from flightline_node.model import Status
from flightline_node.names import check_id

from .reasons import NAMES_LACKING, OTHER_TIME

CLOCK, IDENTITY = "node_clock", "node_identity"
SKEW_S = 300
"""What a node's clock may be off. Source: AWS refuses requests that were signed more than five minutes away
(AWS General Reference, Signature Version 4), so a node beyond it reaches no service either."""
COUNTED = tuple(map(check_id, ("gpu_count", "neuron_devices")))
"""Checks that count accelerators; `measured` of their PASS is how many."""
NAMES = ("uuid", "serial", "pci_bus_id")

Finding = dict[str, Any]


def doubts(record: Mapping[str, Any], begun: float) -> Iterator[Finding]:
    """Findings about an answer to a call. begun: when the call was made, seconds since the epoch; 0: not known."""
    yield from _clock(str(record["started_at"]), float(record["seconds"]), begun, time.time())
    yield from _identities(record)


def _clock(stamp: str, seconds: float, begun: float, now: float) -> Iterator[Finding]:
    try:
        started = datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):  # a day that no calendar has
        started = float("inf")
    earliest, latest = begun - SKEW_S if begun else float("-inf"), now + SKEW_S
    if earliest <= started and started + seconds <= latest:
        return
    wanted = f"the time of the call ({_shown(begun)} to {_shown(now)}, {SKEW_S} s to either side)"
    yield {
        "check": CLOCK,
        "status": str(Status.UNKNOWN),
        "message": f"saw an answer of {stamp}, {seconds:g} s long, wanted {wanted}; do: set the node's clock",
        "remedy": str(OTHER_TIME.remedy),
        "reason": OTHER_TIME.id,
        "measured": stamp,
        "expected": _shown(begun or now),
    }


def _shown(moment: float) -> str:
    return datetime.fromtimestamp(moment).astimezone().isoformat(timespec="seconds") if moment else "any time"


def _identities(record: Mapping[str, Any]) -> Iterator[Finding]:
    counted = [
        one["measured"]
        for one in record["findings"]
        if one["check"] in COUNTED and one["status"] == Status.PASS and type(one.get("measured")) is int
    ]
    named = {next((str(one[key]) for key in NAMES if one.get(key)), "") for one in record["gpus"]} - {""}
    if not counted or (len(named) == max(counted) and len(record["gpus"]) == len(named)):
        return
    message = f"saw {len(named)} different accelerators named, wanted the {max(counted)} that it counted"
    yield {
        "check": IDENTITY,
        "status": str(Status.UNKNOWN),
        "message": f"{message}, each with a UUID, serial number or address of its own",
        "remedy": str(NAMES_LACKING.remedy),
        "reason": NAMES_LACKING.id,
        "measured": len(named),
        "expected": max(counted),
        "unit": "accelerators",
    }
