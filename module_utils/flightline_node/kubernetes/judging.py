"""One judgement of this node, in a process of its own: what breaks or hangs in it costs the agent nothing."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

from ..ask.runner import SYSTEM_PATHS
from ..bounds import DEADLINE_S, NODE_GRACE_S
from ..selfcheck import GO, NO_GO, NOT_RUN
from ..watch.claim import AGENT
from ..watch.tool import run

PREFIX = "kube"
"""How the ids of its runs begin in the log."""


class Judged(NamedTuple):
    """What came of it. status: as `check`'s exit status. why: one line for a person. record: {} without one."""

    status: int
    why: str
    record: Dict[str, Any]


def program() -> List[str]:
    """How this library is started again: the archive it came in, else the package."""
    archive = Path(__file__).parents[2]
    return [sys.executable, str(archive)] if archive.is_file() else [sys.executable, "-m", "flightline_node"]


def judge(settings: Path, level: str, run_id: str, log: Path, scratch: Path, more: tuple[str, ...] = ()) -> Judged:
    """Judge at a level. A process that does not end in time is left behind, and nothing was judged."""
    record = scratch / "record.json"
    record.unlink(missing_ok=True)
    words = ["check", "--settings", str(settings), "--level", level, "--run", run_id, "--reason", "--by", AGENT]
    argv = [*program(), *words, "--record", str(record), "--log", str(log), *more]
    deadline_s = float(DEADLINE_S[level] + NODE_GRACE_S)
    try:
        said = run(argv, os.environ.get("PATH") or SYSTEM_PATHS, deadline_s)
    except OSError as error:
        return Judged(NOT_RUN, f"the check could not be started: {error}", {})
    last = said.text.strip().rpartition("\n")[2][:300]
    if said.status is None:
        return Judged(NOT_RUN, f"no verdict of level {level} within {deadline_s:g} s", {})
    found = _record(record)
    if said.status not in (GO, NO_GO) or found.get("verdict") != ("go" if said.status == GO else "no-go"):
        return Judged(NOT_RUN, last or f"the check ended with status {said.status}", {})
    return Judged(said.status, last, found)


def _record(path: Path) -> Dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
