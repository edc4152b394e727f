"""What the ranks of a run said: journals of the reference job, and the error files of torchrun for any other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ENDS = ("finished", "requeue")


@dataclass(frozen=True)
class Failure:
    """What a rank raised. at: seconds since 1970. step: None where the program does not say."""

    rank: int
    at: float
    text: str
    step: int | None = None


@dataclass
class Rank:
    """One rank in the last start of the run. steps: the values of each step, in order."""

    rank: int
    host: str = ""
    device: int | None = None
    world: int = 0
    failure: Failure | None = None
    ended: bool = False
    last_at: float = 0.0
    steps: list[dict[str, Any]] = field(default_factory=list)


def read(folder: Path) -> tuple[dict[int, Rank], list[str]]:
    """Ranks of the last start, and what could not be read."""
    events, wrong = [], []
    for path in sorted(folder.rglob("rank-*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if not line:
                continue
            try:
                event = json.loads(line)
                events.append((int(event["attempt"]), int(event["rank"]), float(event["time"]), event))
            except (ValueError, KeyError, TypeError):
                # A rank that was killed leaves half a line.
                wrong.append(f"{path.name}:{number}: not a whole event")
    last = max((attempt for attempt, *_ in events), default=0)
    ranks: dict[int, Rank] = {}
    for attempt, rank, at, event in events:
        if attempt == last:
            _take(ranks.setdefault(rank, Rank(rank)), at, event)
    for failure in _torchrun_errors(folder):
        one = ranks.setdefault(failure.rank, Rank(failure.rank))
        one.failure = one.failure or failure
    return ranks, wrong


def _take(one: Rank, at: float, event: dict[str, Any]) -> None:
    one.last_at = max(one.last_at, at)
    name = event.get("event")
    if name == "start":
        one.host, one.device, one.world = str(event.get("host")), event.get("device"), int(event.get("world", 0))
    elif name == "step":
        one.steps.append(event)
    elif name == "exception":
        one.failure = Failure(one.rank, at, f"{event.get('type')}: {event.get('text')}", event.get("step"))
    elif name in ENDS:
        one.ended = True


def _torchrun_errors(folder: Path) -> Sequence[Failure]:
    """<log directory>/<run>/attempt_<n>/<local rank>/error.json, of torchrun --log-dir; the last attempt's."""
    found: dict[int, tuple[str, Failure]] = {}
    for path in sorted(folder.rglob("error.json")):
        try:
            message = json.loads(path.read_text(encoding="utf-8"))["message"]
            extra = message["extraInfo"]
            failure = Failure(int(path.parent.name), float(extra["timestamp"]), str(message["message"]))
        except (ValueError, KeyError, TypeError):
            continue
        attempt = path.parent.parent.name
        if attempt >= found.get(failure.rank, ("", failure))[0]:
            found[failure.rank] = (attempt, failure)
    return [failure for _, failure in found.values()]
