"""The reader `processes`: how many processes there are, which are stuck in the kernel, which are zombies.

Reads one small file per process; only what sleeps uninterruptibly is looked at a second time.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from typing import Any, Dict, List, NamedTuple, Optional

from .files import read_bytes

WATCH_S = 1.0
"""A process that writes to a disk sleeps uninterruptibly for milliseconds; one that is stuck does not move."""
_PF_KTHREAD = 0x00200000
_INIT = 1
_KTHREADD = 2
_MAX_LISTED = 20
_MAX_STACK_LINES = 8
_DEPTH = 64


class Process(NamedTuple):
    """What is read of one."""

    pid: int
    name: str
    state: str
    parent: int
    flags: int
    started_ticks: int


def _bytes(path: str, most: int = 4096) -> Optional[bytes]:
    try:
        return read_bytes(path, most)
    except OSError:  # the process ended meanwhile
        return None


def of(proc: str, pid: str) -> Optional[Process]:
    """One line of proc_pid_stat(5); the name may hold spaces and brackets, so that the last one counts."""
    head, bracket, tail = (_bytes(f"{proc}/{pid}/stat") or b"").rpartition(b") ")
    fields = tail.split()
    if not bracket or len(fields) < 20:
        return None
    name = head.partition(b"(")[2].decode("utf-8", "backslashreplace")
    try:
        return Process(int(pid), name, fields[0].decode(), int(fields[1]), int(fields[6]), int(fields[19]))
    except ValueError:
        return None


def table(proc: str) -> Dict[int, Process]:
    """All of them by their ids."""
    found = (of(proc, pid) for pid in os.listdir(proc) if pid.isdigit())
    return {process.pid: process for process in found if process}


def _switches(proc: str, pid: int) -> List[bytes]:
    """The context-switch counters: they stand still while a process is stuck."""
    return [line for line in (_bytes(f"{proc}/{pid}/status") or b"").splitlines() if b"ctxt_switches" in line]


def _below(known: Dict[int, Process], pid: int, top: int) -> bool:
    """Is a process one of ours? Tools that Flightline runs at this moment must not count.

    Where Flightline runs as a container's first process, everything is below it: then nothing is ours.
    """
    for _ in range(_DEPTH):
        if pid == top:
            return pid != _INIT
        if pid not in known:
            return False
        pid = known[pid].parent
    return False


def _details(proc: str, process: Process, uptime_s: Optional[float]) -> Dict[str, Any]:
    stack = (_bytes(f"{proc}/{process.pid}/stack") or b"").decode("utf-8", "replace").splitlines()
    wchan = (_bytes(f"{proc}/{process.pid}/wchan", 128) or b"").decode("utf-8", "replace").strip()
    found: Dict[str, Any] = {"pid": process.pid, "name": process.name, "parent": process.parent}
    if uptime_s is not None:
        found["age_s"] = round(uptime_s - process.started_ticks / os.sysconf("SC_CLK_TCK"), 1)
    if wchan not in ("", "0"):
        found["wchan"] = wchan
    if stack:
        found["stack"] = [line.strip() for line in stack[:_MAX_STACK_LINES]]
    return found


def _stuck(proc: str, known: Dict[int, Process], watch_s: float) -> List[Process]:
    """Processes, not kernel threads, that do not leave uninterruptible sleep while they are watched."""
    top = os.getppid()
    suspects = {
        process: _switches(proc, process.pid)
        for process in known.values()
        if process.state == "D"
        and not process.flags & _PF_KTHREAD
        and process.parent != _KTHREADD
        and not _below(known, process.pid, top)
    }
    if suspects:
        time.sleep(watch_s)
    return [
        process
        for process, switches in suspects.items()
        if of(proc, str(process.pid)) == process and _switches(proc, process.pid) == switches
    ]


def processes(root: str, watch_s: float = WATCH_S) -> str:
    """{total, states{}, watched_s, stuck_count, stuck[], zombie_count, zombies[]}; the lists are cut."""
    proc = os.path.join(root, "proc")
    found = table(proc)
    stuck = _stuck(proc, found, watch_s)
    zombies = [process for process in found.values() if process.state == "Z"]
    words = (_bytes(os.path.join(proc, "uptime")) or b"").split()
    uptime_s = float(words[0]) if words else None
    return json.dumps(
        {
            "total": len(found),
            "init_seen": 1 in found,
            "states": dict(sorted(Counter(process.state for process in found.values()).items())),
            "watched_s": watch_s,
            "stuck_count": len(stuck),
            "stuck": [_details(proc, process, uptime_s) for process in stuck[:_MAX_LISTED]],
            "zombie_count": len(zombies),
            "zombies": [
                {"pid": p.pid, "name": p.name, "parent": getattr(found.get(p.parent), "name", "?")}
                for p in zombies[:_MAX_LISTED]
            ],
        },
        indent=1,
    )
