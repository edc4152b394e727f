"""What the kernel's buffer overwrote before it was read: the journal has it, where journald was faster.

Asked only then, in a process that nobody waits for. The whole boot is read and judged apart from what the watcher
followed: the latch knows what is the same trouble. journald may be behind, restarted, rotated or emptied meanwhile, so
its messages are counted against the numbers that are missing.
"""

from __future__ import annotations

import os
import re
from typing import Dict, Iterable, List, Optional

from ..judge.checks import kernel_errors
from ..judge.reasons import MESSAGES_LOST
from ..model import Finding, Status, clip_evidence
from .child import Child
from .intake import Intake
from .kmsg import Hole
from .verdicts import KERNEL, Rules

ARGV = ("journalctl", "-k", "-b", "0", "-o", "short-monotonic", "--no-pager", "-q", "--all")
"""--all: a message with a byte that cannot be printed is shown, not its length."""
SILENT_S = 20.0
AGAIN_S = (1.0, 4.0, 15.0)
"""Pauses before it is asked again when it has less than what is missing: journald writes behind a flood."""
MOST_HOLES = 64
_STAMP = re.compile(r"\[ *(\d{1,12})\.(\d{6})\]")


class JournalFeed:
    """Reads the journal of this boot when it is asked to."""

    def __init__(self, rules: Rules, path: str) -> None:
        self._rules = rules
        self._child = Child(lambda: ARGV, {**os.environ, "PATH": path, "LC_ALL": "C"}, SILENT_S, 0.0)
        self._intake = Intake()
        self._waiting: List[Hole] = []
        self._holes: List[Hole] = []
        self._found: List[int] = []
        self._asked = 0
        self._since_us = 0
        self._running = False

    def ask(self, holes: Iterable[Hole], since_s: float) -> None:
        """These records are lost; what is older than since_s (seconds since boot) is settled."""
        self._since_us = int(since_s * 1e6)
        self._waiting += holes
        if len(self._waiting) > MOST_HOLES:
            self._waiting[MOST_HOLES - 1 :] = [Hole(self._waiting[MOST_HOLES - 1].after, self._waiting[-1].before)]
        if not self._holes:
            self._next()

    def _next(self) -> None:
        """A question at a time: in a flood there is always one more, and each shall have its answer."""
        self._holes, self._waiting, self._asked = self._waiting, [], 0
        self._begin(0.0)

    def _begin(self, due: float) -> None:
        """From the journal's start: what the answer before said is not counted twice."""
        self._intake.forget()
        self._found, self._running, self._child.due = [0] * len(self._holes), False, due

    @property
    def fd(self) -> Optional[int]:
        """What to wait for."""
        return self._child.fd

    @property
    def due(self) -> float:
        """When to step at the latest."""
        return self._child.due if self._holes else float("inf")

    def step(self, ready: bool, now: float) -> List[Finding]:
        """Read what came; the findings when the journal is at its end."""
        if not self._holes:
            return []
        lines = [line for line in self._child.step(ready, now) if self._counts(line)]
        if lines:
            self._intake.take(("\n".join(lines) + "\n").encode())
        self._running = self._running or self._child.fd is not None
        ended = self._running and self._child.fd is None
        return self._end(now) if ended or not self._child.installed else []

    def _counts(self, line: str) -> bool:
        stamp = _STAMP.match(line)
        if stamp is None:
            return False
        us = int(stamp.group(1)) * 1_000_000 + int(stamp.group(2))
        for number, hole in enumerate(self._holes):
            begin = hole.after.us if hole.after.us >= 0 else self._since_us
            self._found[number] += begin <= us <= hole.before.us
        return us >= self._since_us

    def _end(self, now: float) -> List[Finding]:
        facts, installed = self._intake.facts(), self._child.installed
        lost = sum(hole.size for hole in self._holes)
        short = sum(min(hole.size, max(0, _wanted(hole) - found)) for hole, found in zip(self._holes, self._found))
        again = short and installed and self._asked < len(AGAIN_S)
        self._child.installed = True
        if again:
            self._begin(now + AGAIN_S[self._asked])
            self._asked += 1
        else:
            self._next()
        found = self._rules.judge(KERNEL, {"kernel": facts})
        return found if again or not short else [*found, _missing(short, lost)]

    def settle(self, since_s: float) -> None:
        """A release: what was lost before it does not matter any more."""
        self._child.close()
        self._since_us = int(since_s * 1e6)
        left = [*self._holes, *self._waiting]
        self._waiting = [hole for hole in left if not 0 <= hole.before.us <= self._since_us]
        self._next()

    def counts(self) -> Dict[str, int]:
        """For the heartbeat."""
        return {}

    def forget(self) -> None:
        """A release: see settle()."""

    def close(self) -> None:
        """End the tool."""
        self._child.close()


def _wanted(hole: Hole) -> int:
    """How many messages the journal must have from one end to the other: the records that were read are there too."""
    return hole.size + 1 + (hole.after.us >= 0)


def _missing(short: int, lost: int) -> Finding:
    message = f"{lost} kernel messages were overwritten before they were read, and the journal lacks {short} of them"
    seen = clip_evidence([f"{lost} sequence numbers of /dev/kmsg are missing, {short} of them also in the journal"])
    words = kernel_errors.CHECK.id, Status.UNKNOWN, message, MESSAGES_LOST.remedy
    return Finding(*words, evidence=seen, reason=MESSAGES_LOST.id)
