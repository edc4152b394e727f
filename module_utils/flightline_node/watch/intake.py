"""Kernel lines in, facts out, at any rate: a cheap search, then a bucket per message, then the parser's stream."""

from __future__ import annotations

import time
from typing import Callable, Dict, Tuple

from ..model import Facts
from ..read.parsers import kernel, kernel_scan, kernel_trace
from ..read.parsers.kernel_events import CORES, NEEDLES

KEPT, MOST_SORTS = 8, 600
"""Events kept at each end of a sort, and sorts: at most about 10 MB in the worst storm; one node has a handful."""
BURST, REFILL_PER_S = 64.0, 20.0
"""Lines of one message that are read at once, and then per second. Thresholds on counts are below (kernel_cases.py)."""
MOST_BUCKETS = 4096
KEY_BYTES, CODED_BYTES, PLAIN_BYTES = 72, 44, 12
"""Of a message: "NVRM: Xid (PCI:0000:53:00): 79," and the like stand in it whole: no code shares another's bucket. What
comes after "pid", and digits after the device in front, differ from line to line and tell nothing."""
PIECE_BYTES = 1 << 20


class Intake:
    """What the kernel said, as the parser's facts. `suppressed`: lines of storms that were only counted."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: Dict[bytes, Tuple[float, float]] = {}
        self.suppressed = 0
        self._trace_left = 0
        self.stream = kernel.Stream(KEPT, MOST_SORTS)

    def forget(self) -> None:
        """Begin anew: what was said before has been proven healed."""
        self.stream = kernel.Stream(KEPT, MOST_SORTS)
        self._buckets.clear()
        self._trace_left = 0

    def take(self, data: bytes) -> int:
        """Read whole lines; returns how many events of note they held."""
        found = 0
        for start in range(0, len(data), PIECE_BYTES):
            begin = data.rfind(b"\n", 0, start) + 1 if start else 0
            end = data.rfind(b"\n", 0, start + PIECE_BYTES) + 1
            picked = self._picked(data[begin:end]) if end > begin else b""
            found += self._fed(picked) if picked else 0
        return found

    def _fed(self, lines: bytes) -> int:
        try:
            return self.stream.feed(lines)
        except Exception:  # a line that breaks the parser must not hide the others
            found = 0
            for line in lines.splitlines(True):
                try:
                    found += self.stream.feed(line)
                except Exception:
                    self.suppressed += 1
            return found

    def facts(self) -> Facts:
        """Everything since the boot or the last forget()."""
        return self.stream.facts()

    def _picked(self, data: bytes) -> bytes:
        lines, self._trace_left = kernel_trace.frames(data, 0, self._trace_left)
        end, now = -1, self._clock()
        for at, _ in kernel_scan.occurrences(data, NEEDLES, CORES):
            if at < end:
                continue
            start = data.rfind(b"\n", 0, at) + 1
            end = data.find(b"\n", at) + 1 or len(data)
            message = data.find(b";", start, end) + 1 or start
            if not self._token(_key(data[message : min(end, message + KEY_BYTES)]), now):
                self.suppressed += 1
                continue
            lines.append(data[start:end])
            following = data.find(b"\n", end) + 1
            if following and b"beyond end of device" in data[at:end]:
                lines.append(data[end:following])  # the line after names the disk
            if kernel_trace.begins(data[start:end]):
                frames, self._trace_left = kernel_trace.frames(data, end, kernel_trace.MOST_LINES)
                lines += frames
        return b"".join(lines)

    def _token(self, key: bytes, now: float) -> bool:
        tokens, then = self._buckets.get(key, (BURST, now))
        tokens = min(BURST, tokens + (now - then) * REFILL_PER_S)
        if key not in self._buckets and len(self._buckets) >= MOST_BUCKETS:
            self._buckets.clear()  # each message may burst once more; that costs time, not memory
        self._buckets[key] = (tokens - 1 if tokens >= 1 else tokens, now)
        return tokens >= 1


def _key(head: bytes) -> bytes:
    """What makes two lines the same message."""
    pid = head.find(b" pid")
    if pid > 0:
        return head[:pid]
    whole = CODED_BYTES if head.startswith((b"NVRM", b"nvidia")) else PLAIN_BYTES
    return head[:whole] + head[whole:].translate(None, b"0123456789")
