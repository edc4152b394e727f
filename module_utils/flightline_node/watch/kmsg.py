"""The kernel's ring buffer as it is written: /dev/kmsg, read from the place where reading stopped.

A record has a sequence number (Documentation/ABI/testing/dev-kmsg), so what was overwritten before it was read is known
by number. The journal is not between the kernel and the watcher: its restarts, rotations and the clock do not matter.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import List, NamedTuple, Optional, Tuple

RECORD_BYTES = 16 << 10
"""The kernel hands out one record a read, at most 8 KiB (CONSOLE_EXT_LOG_MAX); a pipe in its place gives more."""
MOST_RECORDS = 20_000
"""Read in one go at most: about 40 ms of a flood, then the watcher looks at its other duties."""
MOST_HOLES = 64
"""Of one batch; the last one takes in all that follow, with the records between them."""
UNFINISHED_BYTES = 64 << 10
"""Of a line without an end; the kernel writes none, a pipe in its place may."""


class Mark(NamedTuple):
    """A record's place: its sequence number and its time in microseconds since the boot, -1 where it is not known."""

    seq: int
    us: int


NOWHERE = Mark(-1, -1)


class Hole(NamedTuple):
    """Records that were overwritten before they were read, between two that were read."""

    after: Mark
    before: Mark

    @property
    def size(self) -> int:
        """How many there were."""
        return self.before.seq - self.after.seq - 1


class Batch(NamedTuple):
    """Records read in one go: whole lines with their heads; first and last record, NOWHERE without one.

    lost: records overwritten before they were read. holes: where. more: the buffer held more than one go reads.
    """

    data: bytes
    first: Mark
    last: Mark
    holes: Tuple[Hole, ...]
    more: bool

    @property
    def lost(self) -> int:
        """Records overwritten before they were read."""
        return sum(hole.size for hole in self.holes)


def boot_id(root: str = "/") -> str:
    """The kernel's name of this boot; sequence numbers begin anew with each. Raises OSError."""
    with open(os.path.join(root, "proc/sys/kernel/random/boot_id"), encoding="ascii") as handle:
        return handle.read().strip()


def mark(line: bytes) -> Mark:
    """The place in a record's head, NOWHERE where it has none."""
    parts = line[:64].split(b",", 3)
    if len(parts) < 3 or not parts[1].isdigit():
        return NOWHERE
    us = parts[2].partition(b";")[0]
    return Mark(int(parts[1]), int(us) if us.isdigit() else -1)


class Kmsg:
    """The open buffer. `after`: the last record that was read before. Raises OSError when it cannot be opened."""

    def __init__(self, path: str, after: Mark = NOWHERE) -> None:
        # Opened for writing too where it is a pipe: a pipe whose last writer closes it would read as ended for ever.
        flags = os.O_NONBLOCK | os.O_CLOEXEC
        self.fd = os.open(path, flags | (os.O_RDWR if _is_pipe(path) else os.O_RDONLY))
        self.last = after
        self._rest = b""

    def read(self, most: int = MOST_RECORDS) -> Batch:
        """What is there now, without waiting. Raises OSError when the buffer cannot be read."""
        lines: List[bytes] = []
        more = True
        while len(lines) < most:
            try:
                piece = os.read(self.fd, RECORD_BYTES)
            except BlockingIOError:
                more = False
                break
            except OSError as error:
                if error.errno == errno.EPIPE:  # overwritten: the next read begins with the oldest that is left
                    continue
                raise
            if not piece:
                more = False
                break
            self._take(piece, lines)
        return self._batch(lines, more)

    def _take(self, piece: bytes, lines: List[bytes]) -> None:
        if not self._rest and piece.count(b"\n") == 1 and piece.endswith(b"\n"):
            lines.append(piece)
            return
        whole, end, rest = (self._rest + piece).rpartition(b"\n")
        self._rest = rest[-UNFINISHED_BYTES:]
        # Lines after the first that begin with a space are the record's properties, not a message.
        lines += [line + b"\n" for line in whole.split(b"\n") if line and not line.startswith(b" ")] if end else []

    def _batch(self, lines: List[bytes], more: bool) -> Batch:
        first, last = (mark(lines[0]), mark(lines[-1])) if lines else (NOWHERE, NOWHERE)
        if self.last.seq < first.seq and last.seq - first.seq + 1 == len(lines):
            numbered = [first]  # the rest follows without a hole
        else:
            lines, numbered = self._new(lines)
            last = numbered[-1] if numbered else NOWHERE
        if not numbered:
            return Batch(b"".join(lines), NOWHERE, NOWHERE, (), more)
        before, self.last = self.last, last
        return Batch(b"".join(lines), numbered[0], last, _holes(before, numbered), more)

    def _new(self, lines: List[bytes]) -> Tuple[List[bytes], List[Mark]]:
        """Lines that were not read before, those without a number among them; the places of the others."""
        marked = [(line, place) for line in lines for place in [mark(line)] if not 0 <= place.seq <= self.last.seq]
        return [line for line, _ in marked], [place for _, place in marked if place.seq >= 0]

    def close(self) -> None:
        """Give the buffer back."""
        os.close(self.fd)


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(Path(path).stat().st_mode)
    except OSError:
        return False


def _holes(before: Mark, places: List[Mark]) -> Tuple[Hole, ...]:
    """Where numbers are missing between records, what was read before included."""
    found: List[Hole] = []
    for place in places:
        if 0 <= before.seq < place.seq - 1:
            found.append(Hole(found.pop().after if len(found) >= MOST_HOLES else before, place))
        before = place
    return tuple(found)


def newest(path: str) -> Optional[int]:
    """The last sequence number that the buffer holds now; None where it cannot be read."""
    try:
        if _is_pipe(path):
            return None  # reading a pipe would take the lines from the watcher
        buffer = Kmsg(path)
    except OSError:
        return None
    try:
        while buffer.read().more:
            pass
        return buffer.last.seq
    finally:
        buffer.close()
