"""The driver in whose code a CPU locked up, stalled, or a task hangs: read from the call trace under the kernel's line.

Frames after arch/x86/kernel/dumpstack.c and lib/vsprintf.c (%pB): `name+0xoffset/0xsize [module]`, from Linux 5.15 on
with the module's build id behind its name; a "?" in front marks what only lies about on the stack. Other lines may
stand between. The trace is looked for under such a line only, so that other logs are read no slower.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import List, Optional, Tuple

from ..bundle import Data
from . import kernel_lines
from .kernel_lines import KernelLine

STALLS = frozenset({"soft_lockup", "rcu_stall", "hung_task"})
MOST_LINES = 200
"""A trace has some 60 lines; an RCU stall prints that of each CPU."""
WITHIN_S = 20.0
_LINE_BYTES = 2048

_BEGINS = re.compile(rb"BUG: soft lockup - |INFO: task .{1,200} blocked |INFO: rcu\w* (?:self-)?detected ")
_ENDS = re.compile(
    rb"</TASK>|---\[ end trace|-\[ cut here \]-|BUG: (?:soft|unable|kernel|workqueue|scheduling)|INFO: (?:task|rcu)"
    rb"|Oops: |LOCKUP on cpu"
)
_MAY_BE = re.compile(rb"\+0x[0-9a-f]{1,6}/0x|Workqueue: ")
_FRAME = re.compile(
    r"(?P<unsure>\? )?\b(?P<name>[\w.]{1,120})\+0x[0-9a-f]{1,6}/0x[0-9a-f]{1,6}"
    r"(?: \[(?P<module>\w{1,40})(?: [0-9a-f]{8,64})?\])?"
    r"|Workqueue: .{1,120} \[(?P<worker>\w{1,40})\]"
)
_FAMILIES = (
    ("nvidia", re.compile(r"nvidia\w*|gdrdrv")),
    ("efa", re.compile(r"efa(?:_\w+)?")),
    ("ena", re.compile(r"ena(?:_\w+)?")),
    ("mlx5", re.compile(r"mlx5e?_\w+")),
    ("nvme", re.compile(r"nvme(?:_\w+)?")),
    ("lustre", re.compile(r"lustre|ptlrpc|obdclass|osc|lov|lmv|mdc|mgc|fld|fid|lnet|ksocklnd|kefalnd|libcfs")),
)


def begins(line: bytes) -> bool:
    """Is it a line with a call trace under it?"""
    return _BEGINS.search(line) is not None


def frames(data: Data, at: int, left: int) -> Tuple[List[bytes], int]:
    """The lines of a trace from a place on that may name a driver, and how many more lines it may have."""
    found: List[bytes] = []
    while left > 0 and at < len(data):
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        line = bytes(data[at : min(end, at + _LINE_BYTES)])
        if _ENDS.search(line):
            return found, 0
        if _MAY_BE.search(line):
            found.append(line + b"\n")
        at, left = end + 1, left - 1
    return found, left


class Trace:
    """The trace under one line; it may come in parts."""

    def __init__(self, head: KernelLine) -> None:
        self._head, self._left = head, MOST_LINES
        self._sure: Optional[str] = None
        self._unsure: Optional[str] = None

    @property
    def driver(self) -> Optional[str]:
        """Whose the innermost frame is that is a driver's; None where none is."""
        return self._sure or self._unsure

    def read(self, data: Data, at: int) -> bool:
        """Read on from a place; is more known than before?"""
        before, (lines, self._left) = self.driver, frames(data, at, self._left)
        for raw in lines:
            self._take(raw)
        return self.driver != before

    def _take(self, raw: bytes) -> None:
        line = kernel_lines.read(kernel_lines.text_of(raw))
        found = _FRAME.search(line.message) if line and self._is_of_this(line) else None
        driver = _family(found.group("module") or found.group("worker") or found.group("name")) if found else None
        if found and found.group("unsure"):
            self._unsure = self._unsure or driver
        else:
            self._sure = self._sure or driver

    def _is_of_this(self, line: KernelLine) -> bool:
        return line.host == self._head.host and _apart_s(self._head, line) <= WITHIN_S


def _apart_s(one: KernelLine, other: KernelLine) -> float:
    """Seconds between two lines; 0 where their stamps do not tell."""
    if one.uptime is not None and other.uptime is not None:
        return abs(other.uptime - one.uptime)
    try:
        begin, end = (datetime.fromisoformat(str(line.wall)[:19]) for line in (one, other))
    except ValueError:
        return 0.0
    return abs((end - begin).total_seconds())


def _family(name: str) -> Optional[str]:
    """Whose a module is; of what is built into the kernel the function's name tells."""
    return next((family for family, names in _FAMILIES if names.fullmatch(name)), None)
