"""What validation left behind on a node: diagnostics, and test programs whose run has ended.

Only what the user who cleans up made is touched: what belongs to anybody else, is younger than a run can live, or is
held by a living process stays, and is told with the reason. A test program is stray when its parent is process 1:
whoever started it is gone. One with a living parent belongs to a run, ours or a user's, and stays.
"""

from __future__ import annotations

import os
import re
import stat
import time
from typing import Any, Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from ..host import Host, Problem
from ..outcome import Outcome

INIT = 1
PARENT_FIELD, START_FIELD = 1, 19
"""In /proc/PID/stat, counted after the name in parentheses, which may itself hold blanks (proc_pid_stat(5))."""
ASKS = 10
PAUSE_S = 0.5
SECONDS_PER_HOUR = 3600.0
MOST_ENTRIES = 100_000
"""Of a directory that is looked into; what has more is left for a person."""

_RUN = re.compile(
    r"flightline_node(?!\W+watch)|flightline-(node(?!(\.pyz)?\W+watch)|check|boot)|preflight\.yml|flightline\W+(preflight|collect)"
)
"""Command lines of what may be judging a node at this moment; the watcher always runs, and is no run."""


class StrayProcess(NamedTuple):
    """A running program. started: seconds since the epoch; None when it cannot be told."""

    pid: int
    name: str
    parent: int
    user: int
    started: Optional[float]


class Held(NamedTuple):
    """What living processes use: path -> process that has it open, and when the oldest run began."""

    paths: Dict[str, str]
    lines: List[Tuple[str, str]]
    oldest_run: Optional[float]


def ensure(host: Host, wanted: Mapping[str, Any], check: bool) -> Outcome:
    """Stop strays, remove diagnostics, and say what stayed, why, and who holds the GPUs then."""
    if wanted["spare_machine"] and wanted["spare_machine"] == identity(host):
        raise Problem(
            "this is the machine that Ansible runs on",
            "nodes of a cluster",
            "name an inventory with -i, or say -e cleanup_local=true",
        )
    newest = time.time() - wanted["min_age_hours"] * SECONDS_PER_HOUR
    mine = owners()
    kept: List[Dict[str, Any]] = []
    alive = list(processes(host))
    stray = [found for found in alive if found.parent == INIT and found.name in wanted["programs"]]
    stray = [found for found in stray if _said(kept, _shown(found), _why_not_stop(found, mine, newest))]
    held = holders(host, alive)
    paths = [path for pattern in wanted["paths"] for path in host.glob(pattern)]
    paths = [path for path in paths if _said(kept, path, _why_keep(host, path, mine, newest, held))]
    before = {"processes": [_shown(found) for found in stray], "paths": paths}
    if not check:
        _stop(host, stray)
        _remove(host, paths)
    facts = {"stopped": before["processes"], "removed": paths, "kept": kept, "gpu_processes": gpu_processes(host)}
    return Outcome(bool(stray or paths), before, {"processes": [], "paths": []}, facts)


def identity(host: Host) -> str:
    """Tells this machine from others, and a container from its host: the boot and the machine's id."""
    paths = ("/proc/sys/kernel/random/boot_id", "/etc/machine-id")
    return " ".join((host.read(path) or "").strip() for path in paths).strip()


def owners() -> FrozenSet[int]:
    """The user who cleans up, and who became that user with sudo."""
    became = os.environ.get("SUDO_UID", "")
    return frozenset({os.geteuid(), *([int(became)] if became.isdecimal() else [])})


def processes(host: Host) -> Iterator[StrayProcess]:
    """Every process; one that ends while it is looked at is left out."""
    boot = _boot_time(host)
    for directory in host.glob("/proc/[0-9]*"):
        head, _, rest = (host.read(f"{directory}/stat") or "").rpartition(")")
        words = rest.split()
        try:
            user = os.lstat(host.path(directory)).st_uid
        except OSError:
            continue
        if len(words) > PARENT_FIELD:
            started = boot + int(words[START_FIELD]) / _TICKS_PER_S if boot and len(words) > START_FIELD else None
            name = head.partition("(")[2]
            yield StrayProcess(int(os.path.basename(directory)), name, int(words[PARENT_FIELD]), user, started)


_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def _boot_time(host: Host) -> Optional[float]:
    found = re.search(r"^btime (\d+)$", host.read("/proc/stat") or "", re.MULTILINE)
    return float(found.group(1)) if found else None


def holders(host: Host, alive: List[StrayProcess]) -> Held:
    """What the living processes stand in, run, have open or name on their command lines."""
    paths: Dict[str, str] = {}
    lines: List[Tuple[str, str]] = []
    runs: List[float] = []
    for found in alive:
        who = f"{found.name} ({found.pid})"
        for link in ("cwd", "root", "exe"):
            paths.setdefault(_target(host, f"/proc/{found.pid}/{link}"), who)
        for link in host.glob(f"/proc/{found.pid}/fd/*"):
            paths.setdefault(_target(host, link), who)
        line = (host.read(f"/proc/{found.pid}/cmdline") or "").replace("\0", " ")
        lines.append((line, who))
        if _RUN.search(line):
            runs.append(found.started or 0.0)
    paths.pop("", None)
    return Held(paths, lines, min(runs, default=None))


def _target(host: Host, link: str) -> str:
    try:
        return os.readlink(host.path(link))
    except OSError:
        return ""


def _said(kept: List[Dict[str, Any]], what: Any, why: str) -> bool:
    """True when nothing stands against it; else the reason is kept."""
    if why:
        kept.append({"what": what, "why": why})
    return not why


def _why_not_stop(found: StrayProcess, mine: FrozenSet[int], newest: float) -> str:
    if found.user not in mine:
        return f"belongs to user {found.user}"
    if found.started is None or found.started > newest:
        return "started less than a run's life ago"
    return ""


def _why_keep(host: Host, path: str, mine: FrozenSet[int], newest: float, held: Held) -> str:
    """Why a path is not removed; '' when it may be."""
    try:
        entries = list(_entries(host.path(path)))
    except OSError as error:
        return f"cannot be looked at: {error.strerror}"
    if stat.S_ISLNK(entries[0].st_mode):
        return "is a link"
    if os.path.ismount(host.path(path)):
        return "is a mount point"
    if len(entries) > MOST_ENTRIES:
        return f"holds more than {MOST_ENTRIES} entries"
    others = {entry.st_uid for entry in entries} - mine
    if others:
        return f"belongs to user {min(others)}, or holds what does"
    touched = max(entry.st_mtime for entry in entries)
    if touched > newest:
        return "changed less than a run's life ago"
    if held.oldest_run is not None and touched >= held.oldest_run:
        return "may belong to a preflight that is running"
    inside = f"{path}/"
    users = [who for used, who in held.paths.items() if used == path or used.startswith(inside)]
    users += [who for line, who in held.lines if re.search(rf"{re.escape(path)}(?![\w.-])", line)]
    return f"is used by {users[0]}" if users else ""


def _entries(path: str) -> Iterator[os.stat_result]:
    """The path itself and all below it, links not followed; at most one more than MOST_ENTRIES."""
    top = os.lstat(path)
    yield top
    if not stat.S_ISDIR(top.st_mode):
        return
    left = MOST_ENTRIES
    for directory, names, files in os.walk(path, onerror=_raise):
        for name in (*names, *files):
            yield os.lstat(os.path.join(directory, name))
            left -= 1
            if left < 0:
                return


def _raise(error: OSError) -> None:
    raise error


def gpu_processes(host: Host) -> List[str]:
    """Who holds GPU memory, as nvidia-smi prints it; empty where there is no working driver."""
    answer = host.ask(["nvidia-smi", "--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader"])
    return [line.strip() for line in answer.out.splitlines() if line.strip()] if answer.rc == 0 else []


def _remove(host: Host, paths: List[str]) -> None:
    for path in paths:
        argv = ["rm", "--recursive", "--force", "--one-file-system", "--", host.path(path)]
        host.change(argv, f"{path} removed", "look at its mount (df -h)")


def _stop(host: Host, stray: List[StrayProcess]) -> None:
    for signal in ("TERM", "KILL"):
        left = [found for found in stray if _same(host, found)]
        for found in left:
            host.change(["kill", f"-{signal}", str(found.pid)], f"{_shown(found)} ended", "ps -ef; dmesg")
        for _ in range(ASKS if left else 0):
            if not any(_same(host, found) for found in left):
                return
            time.sleep(PAUSE_S)


def _same(host: Host, found: StrayProcess) -> bool:
    """Still this program: the number may be another's by now."""
    head, _, rest = (host.read(f"/proc/{found.pid}/stat") or "").rpartition(")")
    return head.partition("(")[2] == found.name and rest.split()[:1] != ["Z"]


def _shown(found: StrayProcess) -> Dict[str, Any]:
    return {"pid": found.pid, "name": found.name}
