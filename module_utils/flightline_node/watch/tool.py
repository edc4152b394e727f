"""Run a short tool with a deadline; one that cannot be killed is left behind, never waited for."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from typing import List, NamedTuple, Optional, Sequence

MOST_BYTES = 1 << 20
"""What one tool may print, unless more is asked for."""
KILL_GRACE_S = 0.5


class Said(NamedTuple):
    """What a tool printed (both streams) and how it ended; status is None when it did not end in time."""

    status: Optional[int]
    text: str


def run(argv: Sequence[str], path: str, deadline_s: float, most_bytes: int = MOST_BYTES) -> Said:
    """Run argv in a process group of its own. Raises FileNotFoundError, OSError when it cannot be started."""
    began = time.monotonic()
    # The output is read without waiting for its end: a child left behind may hold it open for ever.
    child = subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env={**os.environ, "PATH": path, "LC_ALL": "C"},
    )
    assert child.stdout is not None
    os.set_blocking(child.stdout.fileno(), False)
    pieces: List[bytes] = []
    try:
        status = _listen(child, pieces, began + deadline_s, most_bytes)
        if status is None:
            with contextlib.suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)
            _listen(child, pieces, time.monotonic() + KILL_GRACE_S, most_bytes)
    finally:
        child.stdout.close()
    return Said(status, b"".join(pieces)[:most_bytes].decode("utf-8", "replace").strip())


def _listen(child: subprocess.Popen[bytes], pieces: List[bytes], until: float, most_bytes: int) -> Optional[int]:
    assert child.stdout is not None
    handle, open_ = child.stdout.fileno(), True
    while True:
        left = until - time.monotonic()
        if open_ and left > 0:
            select.select([handle], [], [], min(left, 0.05))
        try:
            piece = os.read(handle, 65536)
            open_ = bool(piece)
            if piece and sum(map(len, pieces)) < most_bytes:
                pieces.append(piece)
                continue
        except BlockingIOError:
            pass
        status = child.poll()
        if status is not None or left <= 0:
            return status
        if not open_:
            time.sleep(0.005)
