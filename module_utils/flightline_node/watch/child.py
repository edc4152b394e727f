"""A tool that is kept running and prints lines: started anew when it ends, given up when it hangs, not waited for."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import Callable, List, Mapping, Optional, Sequence

READ_BYTES = 64 << 10
MOST_KEPT_BYTES = 4 << 20
"""Of a line without an end."""
NOT_INSTALLED_S = 300.0
"""A tool that is not there is looked for again, for it may be installed while the node runs."""


class Child:
    """One such tool. `fd` is what it prints, None while it does not run; `due` is when step() must be called."""

    def __init__(
        self, argv: Callable[[], Sequence[str]], env: Mapping[str, str], silent_s: float, retry_s: float
    ) -> None:
        self._argv, self._env, self._silent_s, self._retry_s = argv, env, silent_s, retry_s
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._left: List[subprocess.Popen[bytes]] = []
        self._rest = b""
        self._heard = 0.0
        self.fd: Optional[int] = None
        self.due = 0.0
        self.installed = True
        self.hung = False
        """Could it not be started anew because the last one is still there, long after it was killed?"""
        self.silences = 0
        """How often in a row it had to be ended because it said nothing, or could not be ended."""

    @property
    def stuck(self) -> bool:
        """Is one of its processes there that does not even die? Then it waits in the kernel, for the driver."""
        self._left = [one for one in self._left if one.poll() is None]
        return bool(self._left)

    def step(self, ready: bool, now: float) -> List[str]:
        """Start, read and end as needed; returns the lines that came."""
        if self._process is None:
            if now >= self.due:
                self._start(now)
            return []
        lines = self._read(now) if ready else []
        if self._process is not None and now - self._heard >= self._silent_s:
            self.silences += 1
            self._end(now)
        return lines

    def _start(self, now: float) -> None:
        if self.stuck:  # another would hang beside it
            self.silences += 1
            self.hung = True
            self.due = now + self._retry_s
            return
        self.hung = False
        try:
            self._process = subprocess.Popen(
                list(self._argv()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=dict(self._env),
            )
        except OSError:
            self.installed, self.due = False, now + NOT_INSTALLED_S
            return
        assert self._process.stdout is not None
        self.installed, self._heard, self._rest = True, now, b""
        self.fd = self._process.stdout.fileno()
        os.set_blocking(self.fd, False)
        self.due = now + self._silent_s

    def _read(self, now: float) -> List[str]:
        assert self.fd is not None
        try:
            piece = os.read(self.fd, READ_BYTES)
        except BlockingIOError:
            return []
        if not piece:
            self._end(now)
            lines, self._rest = [self._rest] if self._rest else [], b""
        else:
            self._heard, self.due, self.silences = now, now + self._silent_s, 0
            *lines, self._rest = (self._rest + piece)[-MOST_KEPT_BYTES:].split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines]

    def _end(self, now: float) -> None:
        process, self._process = self._process, None
        self.fd, self.due = None, now + self._retry_s
        if process is None:
            return
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        if process.stdout:
            process.stdout.close()
        if process.poll() is None:
            self._left.append(process)

    def close(self) -> None:
        """End it; one that does not die is left behind."""
        self._end(0.0)
