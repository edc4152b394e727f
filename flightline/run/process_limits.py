"""Hold this process, a worker that talks to one node, to a time and to a size, whatever it is waiting for.

A pulse (SIGALRM) looks at the clock and at the process's size, and raises in the main thread, also out of a connection
that waits for ever: Python comes back from every system call for a signal. What the worker has started by then is
ended. Ansible's own task timeout uses the same signal once, looks at no size and leaves the processes behind.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from . import process_tree

PULSE_S = 0.05
STATM = Path("/proc/self/statm")


class CutError(BaseException):
    """Time or size is used up. Not an Exception: what waits for a node must not take it for the node's error."""


def size_bytes() -> int:
    """The memory that this process holds; 0 where /proc does not tell."""
    try:
        return int(STATM.read_bytes().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


@contextmanager
def process_limits(seconds: float, growth_bytes: int) -> Iterator[None]:
    """Raise CutError inside when it takes longer, or the process grows by more."""
    until, largest = time.monotonic() + seconds, size_bytes() + growth_bytes

    def pulse(_number: int, _frame: FrameType | None) -> None:
        if time.monotonic() > until:
            raise CutError(f"no answer within {seconds:g} s")
        if size_bytes() > largest:
            raise CutError(f"its answer is endless: stopped when it had taken {growth_bytes >> 20} MiB here")

    before = signal.signal(signal.SIGALRM, pulse)
    signal.setitimer(signal.ITIMER_REAL, PULSE_S, PULSE_S)
    try:
        yield
    except CutError:
        signal.setitimer(signal.ITIMER_REAL, 0)
        end_children()
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def end_children() -> None:
    """End what this process has started, also what was handed to init but is still in the session it leads."""
    mine = os.getpid()
    process_tree.end(process_tree.descendants(mine) | process_tree.of_sessions([mine]))
