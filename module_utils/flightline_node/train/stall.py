"""Whether a running program hangs, by how it looked before: no step, output, I/O, page faults or work. Pure.

A program that waits is only called hung once its rhythm is known: it has stepped (by the contract) or else printed
often enough, and has not for three times as long as ever lately. Where anything says that it works (bytes, faults,
processes that come and go, CPU time where nothing spins, the power of its GPUs, a disk that is waited for, a save that
the contract tells of), it does. A false alarm costs more than a late one.
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
ALONE_S = 15.0
"""One rank busy, all others asleep, and no GPU to look at: so looks one that does not come to what gloo waits in."""
START_S = 900.0
"""Before a rhythm is known: NCCL's first meeting, the first step."""
DISK_S = 300.0
"""For a disk, and for a save that the contract says is under way."""
BEATS, LATELY = 6, 32
"""Steps or outputs after which the rhythm is known, and pauses of which the longest counts."""
PATIENCE = 3.0
SHARE = 0.05
"""Of the usual rate of I/O and faults: less is the noise of threads that only look whether there is work."""
LEAST_BYTES, LEAST_FAULTS, LEAST_CPU = 1024.0, 5.0, 0.05
"""A second."""
FULL_POWER = 0.8
"""Of the usual: kernels that wait in NCCL draw less than those that compute. Own choices all, tried on a CPU only."""
DRAWS = 1.3
"""Times the least power seen, which is that before the program began: below, it uses no GPU (gloo, a tiny model)."""


class Stall(NamedTuple):
    """A hang. stopped: ranks that a signal stopped. quiet_s: since something moved. usual_s: between two of what."""

    stopped: List[int]
    quiet_s: float
    usual_s: float
    ranks: List[str]
    what: str = "an output"

    @property
    def text(self) -> str:
        """For people."""
        if self.stopped:
            names = ", ".join(map(str, self.stopped))
            return f"rank {names} is stopped by a signal (state T) for {self.quiet_s:.0f} s"
        usual = f", usual is {self.what} each {self.usual_s:.1f} s" if self.usual_s else ""
        return f"nothing moves for {self.quiet_s:.0f} s{usual}: {'; '.join(self.ranks[:16])}"


class _Rhythm:
    """Of what comes again and again. at: the last time. known: did it come often enough?"""

    def __init__(self) -> None:
        self.at, self.known = 0.0, False
        self.gaps: Deque[float] = deque(maxlen=LATELY)

    def comes(self, at: float, again: bool) -> None:
        """again: it came before, so that a pause ends."""
        self.gaps += [at - self.at] if again else []
        self.at = at

    @property
    def pause_s(self) -> float:
        """Between two, at most; the longest one of all is that of the start, or a single evaluation's."""
        return sorted(self.gaps)[-2] if len(self.gaps) > 1 else 0.0


class StallRule:
    """Judges one look after the other. together: other nodes take part in the run."""

    def __init__(self, together: bool) -> None:
        self._idle_s = IDLE_TOGETHER_S if together else IDLE_S
        self._last: Optional[Pulse] = None
        self._moved = self._not_disk = self._not_saving = self._longest = 0.0
        self._least_watts = float("inf")
        self._stopped: Dict[int, float] = {}
        self._prints, self._steps = _Rhythm(), _Rhythm()
        self._usual: Dict[str, Deque[float]] = {name: deque(maxlen=60) for name in ("io", "faults", "watts")}

    @property
    def quiet_s(self) -> float:
        """Since something moved."""
        return self._last.at - self._moved if self._last else 0.0

    @property
    def rhythm(self) -> bool:
        """Has it stepped or printed often enough?"""
        return self._prints.known or self._steps.known

    def look(self, pulse: Pulse) -> Optional[Stall]:
        """The hang, for as long as it lasts."""
        last, self._last = self._last, pulse
        if last is None or not pulse.ranks:
            self._moved = self._prints.at = self._steps.at = self._not_disk = self._not_saving = pulse.at
            return None
        stopped = self._stopped_ranks(pulse)
        shares = _cpu(last, pulse)
        busy = sum(share >= LEAST_CPU for share in shares.values())
        if self._moves(last, pulse, busy):
            if self.rhythm:
                self._longest = max(self._longest, last.at - self._moved)
            self._moved = pulse.at
        rhythm, what = (self._steps, "a step or more") if self._steps.known else (self._prints, "an output")
        quiet, silent = pulse.at - self._moved, pulse.at - rhythm.at
        if stopped:
            longest = max(pulse.at - self._stopped[rank] for rank in stopped)
            return Stall(stopped, longest, 0.0, _words(pulse, shares))
        if quiet < self._floor(busy, pulse) or silent < self._floor(busy, pulse):
            return None
        if self.rhythm and (quiet < 2 * self._longest or silent < PATIENCE * rhythm.pause_s):
            return None
        return Stall([], quiet, _median(rhythm.gaps), _words(pulse, shares), what)

    def _floor(self, busy: int, pulse: Pulse) -> float:
        if not self.rhythm:
            return START_S
        if not busy:
            return self._idle_s
        if self._alone(busy, pulse) and not self._power:
            return max(ALONE_S, self._idle_s)
        return max(BUSY_S if pulse.watts is not None and self._power else BLIND_S, self._idle_s)

    def _alone(self, busy: int, pulse: Pulse) -> bool:
        return busy == 1 < len(pulse.ranks) and self._steps.known

    @property
    def _power(self) -> bool:
        """Does the GPUs' power say whether they compute?"""
        return _median(self._usual["watts"]) > DRAWS * self._least_watts

    def _stopped_ranks(self, pulse: Pulse) -> List[int]:
        now = {one.rank for one in pulse.ranks if one.state == "T"}
        self._stopped = {rank: self._stopped.get(rank, pulse.at) for rank in now}
        return sorted(rank for rank, since in self._stopped.items() if pulse.at - since >= STOPPED_S)

    def _beats(self, last: Pulse, pulse: Pulse) -> bool:
        """Has it printed or stepped? The first output, or step, ends what came before the rhythm."""
        printed, stepped = pulse.output > last.output, pulse.beats.steps != last.beats.steps
        if printed:
            self._prints.comes(pulse.at, last.output > 0)
            self._prints.known = len(self._prints.gaps) >= BEATS
        if stepped:
            self._steps.comes(pulse.at, last.beats.steps > 0)
            self._steps.known = pulse.beats.steps >= BEATS * len(pulse.ranks)
        return printed or stepped

    def _moves(self, last: Pulse, pulse: Pulse, busy: int) -> bool:
        seconds = max(pulse.at - last.at, 0.001)
        if pulse.watts is not None:
            self._least_watts = min(self._least_watts, pulse.watts)
        before = {one.pid: one for one in last.ranks}
        same = [(one, before[one.pid]) for one in pulse.ranks if one.pid in before]
        io = sum(max(0, one.io - old.io) for one, old in same) / seconds
        faults = sum(max(0, one.faults - old.faults) for one, old in same) / seconds
        most = max(LEAST_BYTES, SHARE * _median(self._usual["io"]))
        many = max(LEAST_FAULTS, SHARE * _median(self._usual["faults"]))
        moves = self._beats(last, pulse) or pulse.pids != last.pids or io >= most or faults >= many
        if moves:
            self._usual["io"].append(io)
            self._usual["faults"].append(faults)
            if pulse.watts is not None:
                self._usual["watts"].append(pulse.watts)
        saves = self._saves(pulse)
        return moves or saves or self._works(pulse, busy)

    def _saves(self, pulse: Pulse) -> bool:
        """Is a disk waited for, or a checkpoint saved, and not for too long?"""
        if all(one.state != "D" for one in pulse.ranks):
            self._not_disk = pulse.at
        if not pulse.beats.saving:
            self._not_saving = pulse.at
        return any(0 < pulse.at - since < DISK_S for since in (self._not_disk, self._not_saving))

    def _works(self, pulse: Pulse, busy: int) -> bool:
        """CPU time is work where no GPU computes: gloo waits asleep. Else the power of the GPUs says it.

        Of one rank alone it is none, once steps are counted: the others have waited for it at each of them.
        """
        if not self._power:
            return busy > 0 and not self._alone(busy, pulse)
        return pulse.watts is not None and pulse.watts >= FULL_POWER * _median(self._usual["watts"])


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
