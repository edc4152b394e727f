"""The order of a kernel log: newest first, parts out of order, and lines of several machines in one file.

Which boot an event belongs to decides whether it counts. `journalctl -r`, `cat kern.log*` and a collector of many nodes
write lines in another order than the kernel did; stamps and host names tell.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import islice
from typing import Dict, Iterable, List, Optional, Sequence, Tuple

from ..bundle import Data
from . import kernel_lines
from .kernel_lines import KernelLine

SAMPLE = 64
"""Lines at each end of a log that show which way its stamps run."""

MOST_HOSTS = 64
FALLS = 3
BACK_S = 60.0
LINE_BYTES = 2048
MOST_SORTED_BYTES = 16 << 20
"""An uptime that falls once is another boot; one that falls from line to line is a log read from its end."""

MOST_SHOWN = 8
_DEFAULT = re.compile(r"localhost[\w.]*|\(none\)|ubuntu|debian|amazonlinux|buildroot")
"""Names of images: a machine has one until it is given its own, which it may be in every boot."""
_BY_ADDRESS = re.compile(r"ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}[\w.-]*")
"""EC2's own names, which a site may replace later."""


def runs_backwards(head: Iterable[KernelLine], tail: Iterable[KernelLine]) -> bool:
    """Do the stamps fall from line to line at both ends? Lines in the order of the file."""
    return all(_falls(list(part)) for part in (head, tail))


def _falls(lines: Sequence[KernelLine]) -> bool:
    walls = [line.wall[:19] for line in lines if line.wall is not None]
    ups = [line.uptime for line in lines if line.uptime is not None]
    up, down = _steps(walls) if walls else _steps(ups)
    return not up and down >= (1 if walls else FALLS)


def _steps(stamps: Sequence[object]) -> tuple[int, int]:
    pairs = list(zip(stamps, stamps[1:]))
    return sum(one < other for one, other in pairs), sum(one > other for one, other in pairs)  # type: ignore[operator]


def shuffled(head: Iterable[KernelLine], tail: Iterable[KernelLine]) -> bool:
    """Do the stamps fall again and again, though no boot begins there?"""
    return any(_fallen(list(part)) >= FALLS for part in (head, tail))


def _fallen(lines: Sequence[KernelLine]) -> int:
    pairs = [(one, other) for one, other in zip(lines, lines[1:]) if not other.message.startswith("Linux version")]
    walls = sum(str(one.wall)[:16] > str(other.wall)[:16] for one, other in pairs if one.wall and other.wall)
    return walls + sum((one.uptime or 0.0) > (other.uptime or 0.0) + BACK_S for one, other in pairs if not one.wall)


def sorted_by_stamps(data: Data) -> Optional[bytes]:
    """The lines in the order of their stamps; None where those do not tell it."""
    if len(data) > MOST_SORTED_BYTES:
        return None
    lines = bytes(data).splitlines(True)
    stamps = [kernel_lines.read(kernel_lines.text_of(raw[:LINE_BYTES])) for raw in lines]
    walled = all(line is None or line.time is None or line.wall for line in stamps)
    if not walled and bytes(data).count(b"Linux version ") > 1:
        return None
    keys: List[Tuple[str, float, int]] = []
    for number, line in enumerate(stamps):
        if line is None or line.time is None:  # stays behind the line before it
            keys.append((*keys[-1][:2], number) if keys else ("", 0.0, number))
        else:
            keys.append(((line.wall or "")[:26] if walled else "", line.uptime or 0.0, number))
    return b"".join(lines[key[-1]].rstrip(b"\n") + b"\n" for key in sorted(keys))


def turned(data: Data) -> bytes:
    """The log with its last line first."""
    lines = bytes(data).split(b"\n")
    return b"\n".join(reversed(lines[:-1] if not lines[-1] else lines)) + b"\n"


def sample(lines: Iterable[KernelLine]) -> List[KernelLine]:
    """As many lines as show which way a log runs."""
    return list(islice(lines, SAMPLE))


class Boots:
    """The boots that a log tells of: by its order, by their times, and by the machine that booted."""

    def __init__(self) -> None:
        self.of_host: Dict[str, int] = {}
        self.out_of_order = False
        """Are the log's parts out of order, so that an event's boot follows from its stamp?"""
        self.machines: List[str] = []
        """Those that booted, by name, where there are several; known when the log was read."""
        self._walls: List[str] = []
        self._last = 0

    def begun(self, line: KernelLine) -> None:
        """A boot began with this line, or before it."""
        if line.wall is not None:
            self._walls.append(line.wall[:19])

    def named(self, host: str) -> None:
        """The kernel's first words, said by a machine."""
        if host and (host in self.of_host or len(self.of_host) < MOST_HOSTS):
            self.of_host[host] = self.of_host.get(host, 0) + 1

    def settle(self, last: int) -> None:
        """The log was read; last: its last boot, by its order. Names that may be of one renamed machine are one."""
        own = [host for host in self.of_host if not _DEFAULT.fullmatch(host)]
        given = [host for host in own if not _BY_ADDRESS.fullmatch(host)]
        several = given if len(given) > 1 else own if not given else []
        self.machines = sorted(several) if len(several) > 1 else []
        self._walls.sort()
        self._last = last

    def place(self, line: KernelLine, boot: int, of_its_host: int) -> int:
        """The boot of a line. boot: by the log's order; of_its_host: how often its machine had booted by then."""
        if self.machines:
            # A line whose machine did not boot in this log is of its present boot.
            return self._last - (self.of_host.get(line.host, of_its_host) - of_its_host)
        if self.out_of_order and line.wall is not None and len(self._walls) == self._last:
            return bisect_right(self._walls, line.wall[:19])
        return boot
