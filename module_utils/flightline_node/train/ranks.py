"""The processes below torchrun, and which of them are ranks."""

from __future__ import annotations

import contextlib
import os
from typing import Dict, List

from ..ask.processes import of, table

PROC = "/proc"


def below(root: int) -> List[int]:
    """Processes that a process has started, directly or not."""
    children: Dict[int, List[int]] = {}
    for process in table(PROC).values():
        children.setdefault(process.parent, []).append(process.pid)
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
    with open(f"{PROC}/{pid}/environ", "rb") as file:
        return any(entry.startswith(b"LOCAL_RANK=") for entry in file.read().split(b"\0"))


def send(pid: int, number: int) -> None:
    """A signal, where the process is still there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
