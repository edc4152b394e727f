"""Watches a running start: says when it hangs, and does what the job wants done then."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from pathlib import Path
from typing import Callable, List, Optional

from ..ask.processes import of
from . import ranks, ras
from .journals import files, is_journal
from .plan import LaunchPlan
from .pulse import Pulse, PulseTaker, watts
from .stall import Stall, StallRule
from .starts import CONTRACT, StartEvidence, as_user

TELL, DUMP, REQUEUE, END = "tell", "dump", "requeue", "end"
PULSE_S = 1.0
QUIET_S, POWER_EACH_S = 4.0, 60.0
"""The GPUs' power is asked for when nothing moves, and now and then, to know the usual."""
ABORT_S, ANSWER_S = 5.0, 3.0
"""For the ranks to print where they stand (PYTHONFAULTHANDLER) before they are killed, and to write it when asked."""
FORGET_S = 5.0
"""After a hang that ended by itself: a signal to all ranks moves them too, and the launcher ends the run then."""
PIPE = re.compile(r"(?:pipe_|ask-)\d+\.pipe")
"""PyTorch's, for NCCL's flight recorder, and the contract's."""
ASKED = re.compile(r"stack-\d+\.txt|flight-stall-\d+\.json")
"""What a rank writes when it is asked (injected.py)."""


class StallWatch:
    """Of one start. hung: what was seen, '' as long as it runs."""

    def __init__(self, plan: LaunchPlan, evidence: StartEvidence, root: int, say: Callable[[str], None]) -> None:
        self._plan, self._evidence, self._root, self._say = plan, evidence, root, say
        self._taker, self._rule = PulseTaker(root), StallRule(plan.meeting.host != "")
        self._next = self._power_next = 0.0
        self._forget_at = float("inf")
        self.hung = ""

    @property
    def ranks(self) -> int:
        """How many are seen to run."""
        return len(self._taker.ranks)

    def look(self) -> bool:
        """At times. True once the start is to be ended for its hang."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + PULSE_S
        pulse = self._taker.take(now, self._outputs(), self._watts(now), self._contract)
        by_local = {str(local): rank for rank, local in self._taker.ranks.values()}
        if by_local:
            self._evidence.note(ranks={**self._evidence.ranks, **by_local})
        stall = self._rule.look(pulse)
        if stall is None:
            if self.hung:
                self._say("it goes on")
                self._forget_at = now + FORGET_S
            self.hung = ""
            if now >= self._forget_at:
                self._forget()
            return False
        return self._found(stall, pulse) if not self.hung else False

    def _found(self, stall: Stall, pulse: Pulse) -> bool:
        policy, self._forget_at = self._plan.on_stall, float("inf")
        self.hung = stall.text
        self._say(f"the run hangs: {stall.text}; on_stall is {policy}")
        self._evidence.note(
            stall={"at": time.time(), "text": stall.text, "ranks": [one._asdict() for one in pulse.ranks]}
        )
        self._ask_ranks([one.rank for one in pulse.ranks if one.state != "T"], policy in (REQUEUE, END))
        self._ask_ras()
        return policy in (REQUEUE, END)

    def end(self) -> None:
        """Abort the ranks, which print where they stand, then kill all that is left."""
        pids = [pid for pid in ranks.below(self._root) if pid in self._taker.ranks]
        for number in (signal.SIGABRT, signal.SIGCONT):
            for pid in pids:
                ranks.send(pid, number)
        until = time.monotonic() + ABORT_S
        while time.monotonic() < until and any(_alive(pid) for pid in pids):
            time.sleep(0.1)
        # torchrun may have ended by now, and what it started is nobody's child then.
        for pid in {*pids, *ranks.below(self._root), self._root}:
            ranks.send(pid, signal.SIGKILL)

    def _outputs(self) -> List[str]:
        """What this start's ranks print, and the journals of those on this node."""
        printed = files(self._evidence.folder, lambda name: name in ("stdout.log", "stderr.log") or is_journal(name))
        own = [f"{self._plan.journal}/rank-{rank:06d}.jsonl" for rank, _ in self._taker.ranks.values()]
        return [*printed, *own] if self._evidence.folder else own

    @property
    def _contract(self) -> str:
        return f"{self._evidence.folder}/{CONTRACT}" if self._evidence.folder else ""

    def _watts(self, now: float) -> Optional[float]:
        if now < self._power_next and self._rule.quiet_s < QUIET_S:
            return None
        self._power_next = now + POWER_EACH_S
        return watts()

    def _ask_ras(self) -> None:
        """Ask NCCL who holds the job up, while it lives; what it says is kept for blame."""
        try:
            text = ras.asked(self._plan.environment.get("NCCL_RAS_ADDR") or ras.ADDRESS)
        except TimeoutError as error:
            self._say(f"{error}")
            return
        for lag in ras.read(text):
            self._say(lag.text if lag.rank is None else f"rank {lag.rank}: {lag.text}")
        if text and self._evidence.folder:
            with as_user(self._plan.user), contextlib.suppress(OSError):
                Path(self._evidence.folder, ras.FILE).write_text(text, encoding="utf-8")

    def _ask_ranks(self, expected: List[int], wait: bool) -> None:
        """Ask each rank by its pipe for stacks and flight recorder, and NCCL where the job wants it. None is ended.

        expected: ranks that can answer; they are waited for where they are to be ended next.
        """
        if not self._evidence.folder:
            return
        with as_user(self._plan.user):
            for path in files(self._evidence.folder, PIPE.fullmatch):
                with contextlib.suppress(OSError):
                    pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                    os.write(pipe, b"1")
                    os.close(pipe)
        until = time.monotonic() + ANSWER_S * wait
        while time.monotonic() < until and len(files(self._contract, ASKED.fullmatch)) < 2 * len(expected):
            time.sleep(0.1)

    def _forget(self) -> None:
        """What was seen of a pause that ended by itself is no evidence of what comes later."""
        self._forget_at = float("inf")
        self._evidence.note(stall=None)
        with as_user(self._plan.user), contextlib.suppress(OSError):
            for path in files(self._contract, ASKED.fullmatch) if self._contract else []:
                Path(path).unlink()


def _alive(pid: int) -> bool:
    process = of(ranks.PROC, str(pid))
    return process is not None and process.state != "Z"
