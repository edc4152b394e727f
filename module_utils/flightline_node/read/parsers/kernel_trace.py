"""The driver in whose code a CPU locked up, stalled, or a task hangs: by the call trace under the kernel's line.

Frames after arch/x86/kernel/dumpstack.c and lib/vsprintf.c (%pB): `name+0xoffset/0xsize [module]`, from Linux 5.15 on
with the module's build id behind its name; a "?" in front marks what only lies about on the stack. Other lines may
stand between. A trace is looked for under such a line only, so that other logs are read no slower.
"""

from __future__ import annotations

import re
from typing import List, Optional, Tuple

from ..bundle import Data
from . import kernel_lines
from .kernel_lines import KernelLine

STALLS = frozenset({"soft_lockup", "rcu_stall", "hung_task"})
MOST_LINES, MOST_BYTES, WITHIN_S = 200, 2048, 20.0
"""A trace has some 60 lines; an RCU stall prints that of each CPU."""

_BEGINS = re.compile(
    rb"BUG: soft lockup - |INFO: task .{1,200} blocked |INFO: rcu\w* (?:self-)?detected |task:.{1,64} state:D "
)
_ENDS = re.compile(
    rb"</TASK>|---\[ end trace|-\[ cut here \]-|BUG: (?:soft|unable|kernel|workqueue|scheduling)|INFO: (?:task|rcu)"
    rb"|Oops: |LOCKUP on cpu"
)
_MAY_BE = re.compile(rb"\+0x[0-9a-f]{1,6}/0x|Workqueue: ")
_FRAME = re.compile(
    r"(?P<unsure>\? )?\b(?P<name>[\w.]{1,120})\+0x[0-9a-f]{1,6}/0x[0-9a-f]{1,6}"
    r"(?: \[(?P<module>\w{1,40})(?: [0-9a-f]{8,64})?\])?|Workqueue: .{1,120} \[(?P<worker>\w{1,40})\]"
)
_FAMILY = re.compile(
    r"(?P<nvidia>nvidia\w*|gdrdrv)|(?P<efa>efa(?:_\w+)?)|(?P<ena>ena(?:_\w+)?)|(?P<mlx5>mlx5e?_\w+)"
    r"|(?P<nvme>nvme(?:_\w+)?)"
    r"|(?P<nfs>nfs\w*|sunrpc)"
    r"|(?P<lustre>lustre|ptlrpc|obdclass|osc|lov|lmv|mdc|mgc|fld|fid|lnet|ksocklnd|kefalnd|libcfs)"
)
"""A module; of what is built into the kernel the function's name tells."""


def begins(line: bytes) -> bool:
    """Is it a line with a call trace under it?"""
    return _BEGINS.search(line) is not None


def frames(data: Data, at: int, left: int) -> Tuple[List[bytes], int]:
    """The lines of a trace from a place on that may name a driver, and how many more lines it may have."""
    found: List[bytes] = []
    while left > 0 and at < len(data):
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        line = bytes(data[at : min(end, at + MOST_BYTES)])
        if _ENDS.search(line):
            return found, 0
        if _MAY_BE.search(line):
            found.append(line + b"\n")
        at, left = end + 1, left - 1
    return found, left


_HEADLESS = re.compile(
    rb"(?:Call Trace:|<TASK>"
    rb"|(?:^|[\]:]) +(?:\? )?[\w.]{1,120}\+0x[0-9a-f]{1,6}/0x[0-9a-f]{1,6}(?: \[[\w ]{1,120}\])?)\s*$"
)


def cut_off(data: Data) -> str:
    """Of a log that begins within a call trace, whose head is missing, a frame of a driver that training needs."""
    first = bytes(data[:MOST_BYTES]).lstrip().split(b"\n", 1)[0]
    if not _HEADLESS.search(first) or _BEGINS.search(first):
        return ""
    for raw in (first, *frames(data, 0, MOST_LINES)[0]):
        frame = _FRAME.search(raw.decode("utf-8", "replace"))
        name = (frame.group("module") or frame.group("worker") or frame["name"]) if frame else ""
        if name and _FAMILY.fullmatch(name) and not (frame and frame["unsure"]):
            return raw.decode("utf-8", "replace").strip()
    return ""


class Trace:
    """The trace under one line; it may come in parts."""

    def __init__(self, head: KernelLine) -> None:
        self._head, self._left = head, MOST_LINES
        self._found: Tuple[Optional[str], Optional[str]] = (None, None)

    @property
    def driver(self) -> Optional[str]:
        """Whose the innermost frame is that is a driver's; None where none is."""
        return self._found[0] or self._found[1]

    def read(self, data: Data, at: int) -> bool:
        """Read on from a place; is more known than before?"""
        before, (lines, self._left) = self.driver, frames(data, at, self._left)
        for raw in lines:
            line = kernel_lines.read(kernel_lines.text_of(raw))
            frame = _FRAME.search(line.message) if line and self._is_of_this(line) else None
            family = (
                _FAMILY.fullmatch(frame.group("module") or frame.group("worker") or frame["name"]) if frame else None
            )
            if frame and family:
                sure, unsure = self._found
                self._found = (
                    (sure, unsure or family.lastgroup) if frame["unsure"] else (sure or family.lastgroup, unsure)
                )
        return self.driver != before

    def _is_of_this(self, line: KernelLine) -> bool:
        stamps = line.uptime, self._head.uptime
        apart_s = abs(stamps[0] - stamps[1]) if stamps[0] is not None and stamps[1] is not None else 0.0
        return line.host == self._head.host and apart_s <= WITHIN_S
