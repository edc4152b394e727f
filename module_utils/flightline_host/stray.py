"""What validation left behind on a node: diagnostics, and test programs whose run has ended.

A test program is stray when its parent is process 1: whoever started it is gone. One with a living parent belongs to a
run, ours or a user's, and stays.
"""

from __future__ import annotations

import os
import time
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple

from .host import Host
from .outcome import Outcome

INIT = 1
PARENT_FIELD = 1
"""In /proc/PID/stat, counted after the name in parentheses, which may itself hold blanks (proc_pid_stat(5))."""
ASKS = 10
PAUSE_S = 0.5


class Process(NamedTuple):
    """A running program."""

    pid: int
    name: str
    parent: int


def ensure(host: Host, wanted: Mapping[str, Any], check: bool) -> Outcome:
    """Stop strays, remove diagnostics, and say who holds the GPUs then."""
    stray = [found for found in processes(host) if found.parent == INIT and found.name in wanted["programs"]]
    paths = [path for pattern in wanted["paths"] for path in host.glob(pattern)]
    before = {"processes": [_shown(found) for found in stray], "paths": paths}
    if not check:
        _stop(host, stray)
        for path in paths:
            host.change(
                ["rm", "--recursive", "--force", host.path(path)], f"{path} removed", "look at its mount (df -h)"
            )
    facts = {"stopped": before["processes"], "removed": paths, "gpu_processes": gpu_processes(host)}
    return Outcome(bool(stray or paths), before, {"processes": [], "paths": []}, facts)


def processes(host: Host) -> Iterator[Process]:
    """Every process; one that ends while it is looked at is left out."""
    for directory in host.glob("/proc/[0-9]*"):
        head, _, rest = (host.read(f"{directory}/stat") or "").rpartition(")")
        words = rest.split()
        if len(words) > PARENT_FIELD:
            yield Process(int(os.path.basename(directory)), head.partition("(")[2], int(words[PARENT_FIELD]))


def gpu_processes(host: Host) -> List[str]:
    """Who holds GPU memory, as nvidia-smi prints it; empty where there is no working driver."""
    answer = host.ask(["nvidia-smi", "--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader"])
    return [line.strip() for line in answer.out.splitlines() if line.strip()] if answer.rc == 0 else []


def _stop(host: Host, stray: List[Process]) -> None:
    for signal in ("TERM", "KILL"):
        left = [found for found in stray if _same(host, found)]
        for found in left:
            host.change(["kill", f"-{signal}", str(found.pid)], f"{_shown(found)} ended", "ps -ef; dmesg")
        for _ in range(ASKS if left else 0):
            if not any(_same(host, found) for found in left):
                return
            time.sleep(PAUSE_S)


def _same(host: Host, found: Process) -> bool:
    """Still this program: the number may be another's by now."""
    head, _, rest = (host.read(f"/proc/{found.pid}/stat") or "").rpartition(")")
    return head.partition("(")[2] == found.name and rest.split()[:1] != ["Z"]


def _shown(found: Process) -> Dict[str, Any]:
    return {"pid": found.pid, "name": found.name}
