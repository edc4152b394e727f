"""What a running program shows from outside: its ranks' processes in /proc, its output and steps, the GPUs' power."""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path
from typing import Dict, FrozenSet, NamedTuple, Optional, Sequence, Tuple

from ..ask.processes import of
from ..watch import tool
from . import injected, ranks
from .ranks import PROC

LOOKS = 3
"""At a process: one that was just forked still has its parent's environment."""
POWER = ("nvidia-smi", "--query-gpu=power.draw", "--format=csv,noheader,nounits")
POWER_S = 5.0


class RankPulse(NamedTuple):
    """A rank with what it has started. cpu_s, io, faults: since their start. state: the rank's own, or D of any."""

    rank: int
    pid: int
    state: str
    cpu_s: float
    io: int
    faults: int


class Beats(NamedTuple):
    """What the ranks count by the contract. steps: of all together. saving: one of them writes a checkpoint."""

    steps: int = 0
    saving: bool = False


class Pulse(NamedTuple):
    """One look. output: bytes that the ranks have printed. pids: all their processes. watts: of all GPUs."""

    at: float
    output: int
    ranks: Tuple[RankPulse, ...]
    pids: FrozenSet[int]
    watts: Optional[float] = None
    beats: Beats = Beats()


class PulseTaker:
    """Looks at what a launcher has started. It reads each rank's environment once."""

    def __init__(self, root: int) -> None:
        self._root = root
        self.ranks: Dict[int, Tuple[int, int]] = {}
        """Rank and local rank by process."""
        self._looked: Dict[int, int] = {}

    def take(self, at: float, outputs: Sequence[str], watts: Optional[float], contract: str = "") -> Pulse:
        """Now. outputs: files that the ranks print into. contract: folder in which they count their steps."""
        parents = ranks.parents()
        mine = ranks.below(self._root, parents)
        self._know(mine)
        taken = [self._rank(pid, ranks.below(pid, parents)) for pid in mine if pid in self.ranks]
        seen = tuple(sorted(one for one in taken if one))
        beats = _beats(contract, [rank for rank, _ in self.ranks.values()]) if contract else Beats()
        return Pulse(at, sum(map(_size, outputs)), seen, frozenset(mine), watts, beats)

    def _know(self, mine: Sequence[int]) -> None:
        self.ranks = {pid: rank for pid, rank in self.ranks.items() if pid in mine}
        self._looked = {pid: self._looked.get(pid, 0) + 1 for pid in mine}
        for pid in mine:
            if pid not in self.ranks and self._looked[pid] <= LOOKS and ranks.is_rank(pid):
                with contextlib.suppress(OSError, ValueError):
                    found = ranks.environment(pid)
                    local = int(found["LOCAL_RANK"])
                    self.ranks[pid] = int(found.get("RANK", local)), local

    def _rank(self, pid: int, children: Sequence[int]) -> Optional[RankPulse]:
        process = of(PROC, str(pid))
        counted = [one for one in map(_counters, [pid, *children]) if one]
        if process is None or not counted:
            return None
        states = [state for state, *_ in counted]
        state = process.state if process.state in "Tt" or "D" not in states else "D"
        return RankPulse(self.ranks[pid][0], pid, state, sum(one[1] for one in counted),
                         sum(one[2] for one in counted), sum(one[3] for one in counted))  # fmt: skip


def _counters(pid: int) -> Optional[Tuple[str, float, int, int]]:
    """State, seconds of CPU, bytes of I/O and page faults of one process: proc_pid_stat(5), proc_pid_io(5)."""
    try:
        with open(f"{PROC}/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b") ")[2].split()
    except OSError:
        return None
    numbers = list(map(int, fields[7:15]))
    io = 0
    with contextlib.suppress(OSError, ValueError), open(f"{PROC}/{pid}/io", encoding="ascii") as file:
        io = sum(int(line.split(": ")[1]) for line in file if line.startswith(("rchar", "wchar", "read_b", "write_b")))
    return fields[0].decode(), sum(numbers[4:8]) / os.sysconf("SC_CLK_TCK"), io, sum(numbers[:4])


def _beats(contract: str, of: Sequence[int]) -> Beats:
    steps, saves = 0, 0
    for rank in of:
        with contextlib.suppress(OSError, struct.error):
            # The folder is the user's: no link of theirs is followed, and no pipe waited for.
            file = os.open(f"{contract}/beat-{rank:06d}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            counted = os.read(file, injected.BEAT.size)
            os.close(file)
            steps, saves = (old + new for old, new in zip((steps, saves), injected.BEAT.unpack(counted)))
    return Beats(steps, saves > 0)


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def watts() -> Optional[float]:
    """Power of all GPUs together; None where no tool says it."""
    try:
        said = tool.run(POWER, os.environ.get("PATH", os.defpath), POWER_S)
        return sum(map(float, said.text.split())) if said.status == 0 and said.text else None
    except (OSError, ValueError):
        return None
