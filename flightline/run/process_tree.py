"""End a process and everything it started, also what has put itself into a session of its own."""

from __future__ import annotations

import os
import signal
import time
from collections import defaultdict
from collections.abc import Container
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
POLL_S = 0.05
GRACE_S = 0.5

Processes = dict[int, str]
"""Process id -> its start time, which tells it from a later process of the same id."""


def descendants(pid: int) -> Processes:
    """Every process below pid at this moment; empty where there is no /proc."""
    children: dict[int, list[int]] = defaultdict(list)
    started: Processes = {}
    for path in PROC.glob("[0-9]*"):
        child = int(path.name)
        parent, start = _stat(child)
        if parent:
            children[parent].append(child)
            started[child] = start
    found, waiting = {}, list(children[pid])
    while waiting:
        child = waiting.pop()
        if child not in found:
            found[child] = started[child]
            waiting += children[child]
    return found


def of_sessions(leaders: Container[int]) -> Processes:
    """Every other process of the sessions that these processes lead or led."""
    found: Processes = {}
    for path in PROC.glob("[0-9]*"):
        pid = int(path.name)
        with suppress(OSError):
            if pid != os.getpid() and os.getsid(pid) in leaders:
                found[pid] = _stat(pid)[1]
    return {pid: start for pid, start in found.items() if start}


def end_with_sessions(processes: Processes) -> None:
    """End them, and what is by now in a session that one of them led: its parent may be gone."""
    end(processes | of_sessions(processes))


def end(processes: Processes, grace_s: float = GRACE_S) -> None:
    """Terminate the processes that are still there, and kill those that stay."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        alive = [pid for pid, start in processes.items() if _stat(pid)[1] == start]
        for pid in alive:
            with suppress(OSError):
                os.kill(pid, number)
        _wait_for(processes, grace_s)


def are_there(processes: Processes) -> bool:
    """Is one of them still there? A zombie is gone: it holds nothing any more."""
    return any(_stat(pid)[1] == start for pid, start in processes.items())


def _wait_for(processes: Processes, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and are_there(processes):
        time.sleep(POLL_S)


def _stat(pid: int) -> tuple[int, str]:
    """(parent, start time) of a process; (0, "") when it is gone or a zombie."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return 0, ""
    # The name in parentheses may hold anything, also ") Z 1".
    fields = text.rpartition(")")[2].split()
    return (0, "") if fields[0] == "Z" else (int(fields[1]), fields[19])
