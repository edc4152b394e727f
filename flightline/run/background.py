"""Work beside the caller, who may be interrupted while waiting for it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ansible_runner

POLL_S = 0.05


@dataclass
class Background:
    """Work in a thread. ended: nothing more comes of it; broken: what it raised.

    Not Thread.join and is_alive: in Python 3.11 a join that an exception interrupts takes the thread for ended while it
    still runs (Thread._wait_for_tstate_lock releases the lock that the thread holds).
    """

    ended: bool = False
    broken: Exception | None = None

    def wait(self, seconds: float) -> bool:
        """Wait for the end, so long at most; returns whether it has ended."""
        until = time.monotonic() + seconds
        while not self.ended and time.monotonic() < until:
            time.sleep(POLL_S)
        return self.ended


def begin(work: Callable[[], object]) -> Background:
    """Start work; what it raises is kept and not printed."""
    begun = Background()

    def run() -> None:
        try:
            work()
        except Exception as error:
            begun.broken = error
        finally:
            begun.ended = True

    threading.Thread(target=run, daemon=True).start()
    return begun


def play(**arguments: Any) -> tuple[Background, Any]:
    """Start a playbook with ansible-runner's arguments; returns its work and the runner."""
    runner = ansible_runner.interface.init_runner(**arguments)
    return begin(runner.run), runner


@contextmanager
def deaf_to_signals() -> Iterator[None]:
    """What ends a process waits for the end of this."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ending_as_interrupt() -> Iterator[None]:
    """SIGTERM and a hang-up as Ctrl-C."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    # What is ignored stays so: nohup does that to the hang-up.
    wanted = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in wanted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ignore_interrupts() -> None:
    """Until the process ends: what comes now is the verdict, and a Ctrl-C more would cost it. SIGTERM still ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def why(error: Exception) -> str:
    """An error in one line."""
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
