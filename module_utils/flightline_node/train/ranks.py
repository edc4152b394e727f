"""The processes below torchrun, and which of them are ranks."""

from __future__ import annotations

import contextlib
import os
from typing import Dict, List, Optional

from ..ask.processes import of, table

PROC = "/proc"


def parents() -> Dict[int, int]:
    """The parent of each process."""
    return {pid: process.parent for pid, process in table(PROC).items()}


def below(root: int, known: Optional[Dict[int, int]] = None) -> List[int]:
    """Processes that a process has started, directly or not. known: each one's parent, where it was just read."""
    children: Dict[int, List[int]] = {}
    for pid, parent in (parents() if known is None else known).items():
        children.setdefault(parent, []).append(pid)
    found, rest = [], [root]
    while rest:
        started = children.get(rest.pop(), [])
        found += started
        rest += started
    return found


def is_rank(pid: int) -> bool:
    """What torchrun itself has started: its own environment has no LOCAL_RANK, a rank's children share the rank's."""
    process = of(PROC, str(pid))
    try:
        return process is not None and _has_rank(pid) and not _has_rank(process.parent)
    except OSError:
        return False


def _has_rank(pid: int) -> bool:
    return "LOCAL_RANK" in environment(pid)


def environment(pid: int) -> Dict[str, str]:
    """With which a process was started. Raises OSError where it is gone, or another user's."""
    with open(f"{PROC}/{pid}/environ", "rb") as file:
        words = file.read().decode("utf-8", "replace").split("\0")
    return dict(word.split("=", 1) for word in words if "=" in word)


def send(pid: int, number: int) -> None:
    """A signal, where the process is still there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
