"""What the ranks of a run left behind: their journals, and torchrun's own files."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Callable, List, NamedTuple, Optional, Tuple

from ..tell.training_run import event_of
from .plan import LaunchPlan

TICK_S = 0.01
"""By which a file's time may lag behind the clock: the kernel stamps with that of its last tick."""
OTHERS = re.compile(
    r"connection (?:closed|reset|refused)|broken pipe|remote (?:process|peer)|timed? ?out|ncclRemoteError"
    r"|DistBackendError|watchdog|socket(?:Start|Progress|Poll)|SignalException|peer closed"
    r"|RendezvousTimeout|RendezvousConnection",
    re.I,
)
"""Words of an error that says another rank is gone or late: no reason not to start again."""


class StartFault(NamedTuple):
    """What a start ended by. text: the first own exception, '' when there is none. step: None where not said."""

    text: str
    step: Optional[int]


def fault(plan: LaunchPlan, since: float) -> StartFault:
    """The first exception of its own that some rank said after a moment: journals, then torchrun's error files."""
    found: List[Tuple[float, str, Optional[int]]] = []
    for path in _files(plan.journal, _is_journal):
        for line in text(path).splitlines():
            event = event_of(line)
            if event.get("event") == "exception":
                found.append((float(event["time"]), f"{event.get('type')}: {event.get('text')}", event.get("step")))
    for path in _files(plan.logs, lambda name: name == "error.json"):
        message = event_of(text(path)).get("message")
        if isinstance(message, dict):
            at = float((message.get("extraInfo") or {}).get("timestamp") or 0)
            # torchrun counts in whole seconds.
            found.append((at + 1, str(message.get("message")), None))
    own = sorted(
        (entry for entry in found if entry[0] >= since and not OTHERS.search(entry[1])), key=lambda entry: entry[0]
    )
    if not own or not own[0][1].strip():
        return StartFault("", None)
    return StartFault(own[0][1].strip().splitlines()[0][:500], own[0][2])


def said(plan: LaunchPlan, event: str, since: float) -> bool:
    """Whether a rank, perhaps of another node, ended so after a moment: requeue (told to, and saved) or finished."""
    for path in _files(plan.journal, _is_journal):
        events = [event_of(line) for line in text(path).splitlines()[-5:]]
        if any(one.get("event") == event and float(one["time"]) >= since for one in events):
            return True
    return False


def elsewhere(plan: LaunchPlan, since: float) -> bool:
    """Whether a rank of another node has written into its journal after a moment."""
    return any(Path(path).stat().st_mtime >= since - TICK_S for path in _files(plan.journal, _is_journal))


def _is_journal(name: str) -> bool:
    return name.startswith("rank-") and name.endswith(".jsonl")


def ranks_started(plan: LaunchPlan, since: float) -> bool:
    """Whether torchrun has come as far as to start ranks: it makes their log files then."""
    logs = _files(plan.logs, lambda name: name in ("stdout.log", "stderr.log"))
    return any(Path(path).stat().st_mtime >= since - 1 for path in logs)


def _files(folder: str, wanted: Callable[[str], bool]) -> List[str]:
    return [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names if wanted(name)]


def text(path: str) -> str:
    """A file's text; '' where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
