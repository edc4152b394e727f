"""What the ranks of a run said in the journals of the reference job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flightline_node.train.texts import Seen
from flightline_node.train.words import word_of

ENDS = ("finished", "requeue")
NAMES = "rank-*.jsonl"


@dataclass
class Rank:
    """One rank in the last start of the run. failure: what it raised. steps: the values of each step, in order.

    injected: the contract's, which is of one node and says no end.
    """

    rank: int
    host: str = ""
    device: int | None = None
    world: int = 0
    failure: Seen | None = None
    ended: bool = False
    injected: bool = False
    last_at: float = 0.0
    steps: list[dict[str, Any]] = field(default_factory=list)


def read(place: Path | Sequence[Path]) -> tuple[dict[int, Rank], list[str]]:
    """Ranks of the last start, of a folder or of these files, and what could not be read."""
    events, wrong = [], []
    paths = sorted(place.rglob(NAMES)) if isinstance(place, Path) else [one for one in place if one.match(NAMES)]
    for path in paths:
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
    return ranks, wrong


def _take(one: Rank, at: float, event: dict[str, Any]) -> None:
    one.last_at = max(one.last_at, at)
    name = event.get("event")
    if name == "start":
        one.injected = event.get("by") == "contract"
        one.host, one.device, one.world = str(event.get("host")), event.get("device"), int(event.get("world", 0))
    elif name == "step":
        one.steps.append(event)
    elif name == "exception":
        text = f"{event.get('type')}: {event.get('text')}"
        one.failure = Seen(word_of(text), text, one.rank, at=at, step=event.get("step"))
    elif name in ENDS:
        one.ended = True
