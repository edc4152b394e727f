"""Processes of the bed, by process id: never ended by a pattern that another program could match."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

ENDS_WITHIN_S = 120


def start(argv: list[str], pid_file: Path, log: Path, directory: Path = Path("/")) -> None:
    """Start a process in a session of its own; it outlives this one."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            argv, stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=True, cwd=directory
        )
    pid_file.write_text(str(process.pid))


def _command_line(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def alive(pid_file: Path, mark: str) -> int:
    """The id in the file if that process still runs with `mark` among its arguments; else 0.

    A process id is used again by others after a reboot or a killed run.
    """
    try:
        pid = int(pid_file.read_text())
    except (OSError, ValueError):
        return 0
    return pid if any(mark in word for word in _command_line(pid)) else 0


def marked(mark: str) -> list[int]:
    """Every process with the mark (a path of this bed) among its arguments, this one excluded."""
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [pid for pid in pids if pid != os.getpid() and any(mark in word for word in _command_line(pid))]


def end(pid: int) -> None:
    """End a process at once and wait until it is gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + ENDS_WITHIN_S
    while _command_line(pid) not in ([], [""]) and time.monotonic() < deadline:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        time.sleep(0.02)
