"""The proof of idle nodes under way: lent by the scheduler, and given back the moment that anybody wants them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from ..journal.stamps import now_utc
from .ports import EdgeError, IdleHolder
from .prove import BegunProof, Preflight

POLL_S = 2.0
"""A job that arrives waits at most 10 s: for this, the end of the tests, and the scheduler's own next look."""
HOLD_ON_S = 60.0


@dataclass
class IdleProof:
    """Watches one in a thread.

    stop_why: what else ends it (a pause, a lost lease), '' for nothing. yields: ends the tests on the nodes themselves.
    why: what ended it early. trouble: what was said instead of giving back. Nodes that were found sick stay
    held for the caller to give back, so that no job starts on one before it is out of service.
    """

    holder: IdleHolder
    judging: BegunProof
    hosts: Sequence[str]
    level: str
    since: str
    stop_why: Callable[[], str]
    yields: Callable[[Collection[str]], None]
    why: str = ""
    trouble: str = ""
    _stop: threading.Event = field(default_factory=threading.Event)
    _over: threading.Event = field(default_factory=threading.Event)

    def wait(self, seconds: float) -> bool:
        """Wait so long at most; is it over, and are the nodes back that were not found sick?"""
        return self._over.wait(seconds)

    def end(self) -> None:
        """End it now."""
        self._stop.set()
        self._over.wait()

    def watch(self) -> None:
        """Until it is over."""
        said_at = time.monotonic()
        try:
            while not self.judging.over and not self.why:
                self.why = "ended from here" if self._stop.wait(POLL_S) else self._asked()
                if time.monotonic() - said_at > HOLD_ON_S and not self.why:
                    self.holder.hold_on()
                    said_at = time.monotonic()
        except EdgeError as error:
            self.why = str(error)
        finally:
            try:
                self._end()
            finally:
                self._over.set()

    def _end(self) -> None:
        self.judging.stop()
        try:
            if self.judging.stopped:
                self.yields(self.hosts)
        except EdgeError as error:
            self.trouble = str(error)
        try:
            self.holder.give_back(self.judging.sick())
        except EdgeError as error:
            self.trouble = str(error)

    def _asked(self) -> str:
        try:
            return self.stop_why() or self.holder.waiting(self.hosts, self.since)
        except EdgeError:
            return ""  # while the scheduler does not answer it starts no job either


def begin(
    holder: IdleHolder,
    prover: Preflight,
    chosen: Sequence[tuple[str, str]],
    stop_why: Callable[[], str],
    yields: Callable[[Collection[str]], None] = lambda _: None,
) -> IdleProof | None:
    """Begin with those (host, level), all at one level; None where they are wanted now. Raises EdgeError."""
    wanted, level, since = [host for host, _ in chosen], chosen[0][1], now_utc()
    if holder.waiting(wanted, since):
        return None
    try:
        hosts = list(holder.hold(wanted))
        judging = prover.begin(hosts, level) if hosts else None
    except EdgeError:
        holder.give_back()
        raise
    if judging is None:
        holder.give_back()
        return None
    proof = IdleProof(holder, judging, hosts, level, since, stop_why, yields)
    threading.Thread(target=proof.watch, name="proof", daemon=True).start()
    return proof
