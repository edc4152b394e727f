"""What torchrun itself says, such as its report of who ended first: shown as it comes, and kept with the start."""

from __future__ import annotations

import contextlib
import re
import sys
import threading
from collections import deque
from typing import BinaryIO, Deque

REPORT = "torchrun.err"
KEPT_LINES = 400
"""The end of it, where the report is. A report of one rank has some 15 lines. Own choice."""
MOST_LINE = 4096
OF_A_RANK = re.compile(rb"\[[\w.-]*\d+\]:")
"""torchrun's prefix of a rank's line (`--tee`): the rank has its own log in the start's folder."""
PATIENCE_S = 2.0
"""Who outlives torchrun holds its end of the pipe: nobody waits for that."""


class TorchrunReport:
    """Reads torchrun's stderr until its end."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lines: Deque[bytes] = deque(maxlen=KEPT_LINES)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for line in iter(lambda: self._stream.readline(MOST_LINE), b""):
            if not OF_A_RANK.match(line):
                self._lines.append(line)
            # Who listened may be gone; the ranks must not stand still for that.
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.buffer.write(line)
                sys.stderr.buffer.flush()

    def text(self) -> bytes:
        """All that was kept, once torchrun has ended."""
        self._thread.join(PATIENCE_S)
        return b"".join(tuple(self._lines))
