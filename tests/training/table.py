"""The table of faults that a run of these tests prints: what was broken, who was named, and what it cost."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from flightline.training import flight, journals
from flightline.training.blame import RankBlame, blames
from tests.beds import until as until_true

from .launch import DEADLINE_S, events


@dataclass(frozen=True)
class Row:
    """seconds: from the fault to the first step that was done again or new. lost: steps that were done again."""

    fault: str
    named: str
    seconds: float
    lost: int


ROWS: list[Row] = []
STALLS: list[tuple[float, float, float, int]] = []
"""Seconds of a checkpoint's stall, of a step, of a step beside which one is written, and steps between two checkpoints."""

NOTICED: list[tuple[str, float, str]] = []  # fault and trainer, seconds until the launcher said it, what it said


def until(what: Callable[[], Any], why: str) -> Any:
    """The first value that is true."""
    return until_true(what, DEADLINE_S, why, 0.05)


def blame(logs: Path) -> list[RankBlame]:
    """What `flightline blame` says of the last start."""
    return blames(journals.read(logs)[0], flight.dumps(logs)[0])


def named(logs: Path) -> str:
    """That in a few words."""
    return ", ".join(f"rank {one.rank} {one.kind}" for one in blame(logs)) or "nobody"


def add(fault: str, who: str, logs: Path, at: float, attempt: int = 1) -> Row:
    """Measure a run that came back. at: moment of the fault, seconds since 1970; attempt: the start that came after."""
    steps = [event for event in events(logs, 0) if event["event"] == "step"]
    again = next(event for event in steps if event["attempt"] >= attempt)
    reached = max(event["step"] for event in steps if event["attempt"] < attempt)
    row = Row(fault, who, again["time"] - at, reached - (again["step"] - 1))
    ROWS.append(row)
    return row


def text() -> list[str]:
    """The table as Markdown, with the machine's load."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    rows = [f"| {row.fault} | {row.named} | {row.seconds:.0f} s | {row.lost} |" for row in ROWS]
    head = ["| fault | named | to the first resumed step | steps lost |", "|---|---|---|---|"]
    stalls = [
        f"checkpoint stall {1000 * stall:.0f} ms, step {1000 * step:.0f} ms: {stall / step:.1%} of the step that saves, "
        f"{stall / step / every:.3%} of all at one each {every}; a step beside which one is written {1000 * beside:.0f} ms"
        for stall, step, beside, every in STALLS
    ]
    if rows:
        rows.append(f"median {median(row.seconds for row in ROWS):.0f} s")
    stalls += [f"{what}: noticed after {seconds:.1f} s, {text}" for what, seconds, text in NOTICED]
    return [f"load {load} on {os.cpu_count()} cores", *(head + rows if rows else []), *stalls] if rows or stalls else []
