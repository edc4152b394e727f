"""Whether a running program hangs, by how it looked before: no output, no I/O, no page faults, no work. Pure.

A program that waits is only called hung once its rhythm is known: it has printed often enough, and is silent three
times as long as ever lately. Where anything says that it works (bytes, faults, processes that come and go, CPU time
where nothing spins, the power of its GPUs, a disk that is waited for), it does. A false alarm costs more than a late
one.
"""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import Deque, Dict, List, NamedTuple, Optional

from .pulse import Pulse, RankPulse

STOPPED_S = 10.0
"""State T (SIGSTOP) of a rank; a debugger's is t."""
IDLE_S, IDLE_TOGETHER_S = 13.0, 60.0
"""All ranks asleep. Where other nodes take part they may wait for a checkpoint that only another one writes."""
BUSY_S, BLIND_S = 25.0, 300.0
"""Ranks that spin, as NCCL's do when they wait: by the power of the GPUs, and where that is not known."""
START_S = 900.0
"""Before a rhythm is known: NCCL's first meeting, the first step."""
DISK_S = 300.0
BEATS, LATELY = 6, 32
"""Outputs after which the rhythm is known, and of which the longest pause counts."""
PATIENCE = 3.0
SHARE = 0.05
"""Of the usual rate of I/O and faults: less is the noise of threads that only look whether there is work."""
LEAST_BYTES, LEAST_FAULTS, LEAST_CPU = 1024.0, 5.0, 0.05
"""A second."""
FULL_POWER = 0.8
"""Of the usual: kernels that wait in NCCL draw less than those that compute. Own choices all, tried on a CPU only."""


class Stall(NamedTuple):
    """A hang. stopped: ranks that a signal stopped. quiet_s: for how long nothing moved. usual_s: between outputs."""

    stopped: List[int]
    quiet_s: float
    usual_s: float
    ranks: List[str]

    @property
    def text(self) -> str:
        """For people."""
        if self.stopped:
            names = ", ".join(map(str, self.stopped))
            return f"rank {names} is stopped by a signal (state T) for {self.quiet_s:.0f} s"
        usual = f", usual is an output each {self.usual_s:.1f} s" if self.usual_s else ""
        return f"nothing moves for {self.quiet_s:.0f} s{usual}: {'; '.join(self.ranks[:16])}"


class StallRule:
    """Judges one look after the other. together: other nodes take part in the run."""

    def __init__(self, together: bool) -> None:
        self._idle_s = IDLE_TOGETHER_S if together else IDLE_S
        self._last: Optional[Pulse] = None
        self._moved = self._printed = self._not_disk = 0.0
        self._stopped: Dict[int, float] = {}
        self._gaps: Deque[float] = deque(maxlen=LATELY)
        self._longest = 0.0
        self._usual: Dict[str, Deque[float]] = {name: deque(maxlen=60) for name in ("io", "faults", "watts")}

    @property
    def quiet_s(self) -> float:
        """Since something moved."""
        return self._last.at - self._moved if self._last else 0.0

    @property
    def rhythm(self) -> bool:
        """Has it printed often enough?"""
        return len(self._gaps) >= BEATS

    def look(self, pulse: Pulse) -> Optional[Stall]:
        """The hang, for as long as it lasts."""
        last, self._last = self._last, pulse
        if last is None or not pulse.ranks:
            self._moved = self._printed = self._not_disk = pulse.at
            return None
        stopped = self._stopped_ranks(pulse)
        shares = _cpu(last, pulse)
        busy = max(shares.values(), default=0.0) >= LEAST_CPU
        if self._moves(last, pulse, busy):
            if self.rhythm:
                self._longest = max(self._longest, last.at - self._moved)
            self._moved = pulse.at
        quiet, silent = pulse.at - self._moved, pulse.at - self._printed
        if stopped:
            longest = max(pulse.at - self._stopped[rank] for rank in stopped)
            return Stall(stopped, longest, 0.0, _words(pulse, shares))
        if quiet < self._floor(busy, pulse) or silent < self._floor(busy, pulse):
            return None
        if self.rhythm and (quiet < 2 * self._longest or silent < PATIENCE * self._pause_s()):
            return None
        return Stall([], quiet, median(self._gaps) if self._gaps else 0.0, _words(pulse, shares))

    def _pause_s(self) -> float:
        """Between two outputs, at most; the longest one of all is that of the start, or a single evaluation's."""
        return sorted(self._gaps)[-2]

    def _floor(self, busy: bool, pulse: Pulse) -> float:
        if not self.rhythm:
            return START_S
        if not busy:
            return self._idle_s
        return max(BUSY_S if pulse.watts is not None and self._usual["watts"] else BLIND_S, self._idle_s)

    def _stopped_ranks(self, pulse: Pulse) -> List[int]:
        now = {one.rank for one in pulse.ranks if one.state == "T"}
        self._stopped = {rank: self._stopped.get(rank, pulse.at) for rank in now}
        return sorted(rank for rank, since in self._stopped.items() if pulse.at - since >= STOPPED_S)

    def _moves(self, last: Pulse, pulse: Pulse, busy: bool) -> bool:
        seconds = max(pulse.at - last.at, 0.001)
        printed = pulse.output > last.output
        if printed:
            # The first output ends what came before the rhythm.
            self._gaps += [pulse.at - self._printed] if last.output else []
            self._printed = pulse.at
        before = {one.pid: one for one in last.ranks}
        same = [(one, before[one.pid]) for one in pulse.ranks if one.pid in before]
        io = sum(max(0, one.io - old.io) for one, old in same) / seconds
        faults = sum(max(0, one.faults - old.faults) for one, old in same) / seconds
        most = max(LEAST_BYTES, SHARE * _median(self._usual["io"]))
        many = max(LEAST_FAULTS, SHARE * _median(self._usual["faults"]))
        moves = printed or pulse.pids != last.pids or io >= most or faults >= many
        if moves:
            self._usual["io"].append(io)
            self._usual["faults"].append(faults)
            if pulse.watts is not None:
                self._usual["watts"].append(pulse.watts)
        disk = self._disk(pulse)
        return moves or disk or self._works(pulse, busy)

    def _disk(self, pulse: Pulse) -> bool:
        """Is a disk waited for, and not for too long?"""
        if all(one.state != "D" for one in pulse.ranks):
            self._not_disk = pulse.at
            return False
        return pulse.at - self._not_disk < DISK_S

    def _works(self, pulse: Pulse, busy: bool) -> bool:
        """CPU time is work where there is no GPU: gloo waits asleep. Beside one, its power says whether it computes."""
        if pulse.watts is None or not self._usual["watts"]:
            return busy and not any(self._usual["watts"])
        return pulse.watts >= FULL_POWER * _median(self._usual["watts"])


def _cpu(last: Pulse, pulse: Pulse) -> Dict[int, float]:
    """Cores that each rank uses."""
    before = {one.pid: one.cpu_s for one in last.ranks}
    seconds = max(pulse.at - last.at, 0.001)
    return {one.rank: (one.cpu_s - before[one.pid]) / seconds for one in pulse.ranks if one.pid in before}


def _words(pulse: Pulse, shares: Dict[int, float]) -> List[str]:
    """Each rank's state, those that stand apart first."""

    def state(one: RankPulse) -> str:
        if one.state in "TtDZ":
            return {"T": "stopped", "t": "held by a debugger", "D": "waits for a disk", "Z": "ended"}[one.state]
        return "busy" if shares.get(one.rank, 0.0) >= LEAST_CPU else "asleep"

    groups: Dict[str, List[int]] = {}
    for one in pulse.ranks:
        groups.setdefault(state(one), []).append(one.rank)
    fewest = sorted(groups.items(), key=lambda item: len(item[1]))
    return [f"rank {', '.join(map(str, ranks))} {name}" for name, ranks in fewest]


def _median(values: Deque[float]) -> float:
    return median(values) if values else 0.0
