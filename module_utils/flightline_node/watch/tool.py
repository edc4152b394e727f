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
"""As much as sinfo lists of 10,000 nodes, and more."""
KILL_GRACE_S = 0.5


class Said(NamedTuple):
    """What a tool printed (both streams) and how it ended; status is None when it did not end in time."""

    status: Optional[int]
    text: str


def run(argv: Sequence[str], path: str, deadline_s: float) -> Said:
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
        status = _listen(child, pieces, began + deadline_s)
        if status is None:
            with contextlib.suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)
            _listen(child, pieces, time.monotonic() + KILL_GRACE_S)
    finally:
        child.stdout.close()
    return Said(status, b"".join(pieces)[:MOST_BYTES].decode("utf-8", "replace").strip())


def _listen(child: subprocess.Popen[bytes], pieces: List[bytes], until: float) -> Optional[int]:
    assert child.stdout is not None
    handle, open_ = child.stdout.fileno(), True
    while True:
        left = until - time.monotonic()
        if open_ and left > 0:
            select.select([handle], [], [], min(left, 0.05))
        try:
            piece = os.read(handle, 65536)
            open_ = bool(piece)
            if piece and sum(map(len, pieces)) < MOST_BYTES:
                pieces.append(piece)
                continue
        except BlockingIOError:
            pass
        status = child.poll()
        if status is not None or left <= 0:
            return status
        if not open_:
            time.sleep(0.005)
