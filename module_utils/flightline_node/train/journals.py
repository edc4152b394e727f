"""What the ranks of a run left behind: their journals, and torchrun's own files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, List

from ..tell.training_run import event_of
from .plan import LaunchPlan


def said(plan: LaunchPlan, event: str, since: float) -> bool:
    """Whether a rank, perhaps of another node, ended so after a moment: requeue (told to, and saved) or finished."""
    for path in files(plan.journal, is_journal):
        events = [event_of(line) for line in text(path).splitlines()[-5:]]
        if any(one.get("event") == event and float(one["time"]) >= since for one in events):
            return True
    return False


def saved(folder: str, since: float) -> bool:
    """Whether a rank of this node has saved a checkpoint after a moment, by the journal that it carries."""
    events = [event_of(line) for path in files(folder, is_journal) for line in text(path).splitlines()[-20:]]
    return any(one.get("event") == "checkpoint" and float(one["time"]) >= since for one in events)


def is_journal(name: str) -> bool:
    """Of a rank, by its name."""
    return name.startswith("rank-") and name.endswith(".jsonl")


def ranks_started(plan: LaunchPlan, since: float) -> bool:
    """Whether torchrun has come as far as to start ranks: it makes their log files then."""
    logs = files(plan.logs, lambda name: name in ("stdout.log", "stderr.log"))
    return any(Path(path).stat().st_mtime >= since - 1 for path in logs)


def files(folder: str, wanted: Callable[[str], Any]) -> List[str]:
    """All files below a folder whose names are wanted."""
    return [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names if wanted(name)]


def text(path: str) -> str:
    """A file's text; '' where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
