"""One remediator at a time: a lease with a fencing token, kept alive beside the work."""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from ...store.sqlite import StoreError

RENEWED_PER_LEASE = 3
SKEW_S = 5.0
"""How far two control nodes' clocks may be apart before one takes the other's lease early; the token fences then."""


class LeaseLostError(RuntimeError):
    """Another remediator has taken over: nothing more may be begun."""


@dataclass(frozen=True)
class Lease:
    """The right to change something. token: grows with every owner, and the store refuses writes under an old one."""

    owner: str
    token: int


@dataclass(frozen=True)
class LeaseHolder:
    """Who has it now. expires_at: seconds since the epoch."""

    owner: str
    token: int
    expires_at: float


class Leases(Protocol):
    """Where the lease is kept. Every method raises StoreError when the store cannot be used."""

    def acquire(self, owner: str, now_s: float, ttl_s: float) -> Lease | None:
        """Take the lease when it is free or expired; None while another has it."""

    def renew(self, lease: Lease, now_s: float, ttl_s: float) -> None:
        """Keep it. Raises LeaseLostError."""

    def give_up(self, lease: Lease) -> None:
        """Let the next one have it at once."""

    def holder(self) -> LeaseHolder | None:
        """Who has it."""


def me() -> str:
    """A name for this process that no other has."""
    return f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(3)}"


@dataclass
class RenewedLease:
    """A lease that a thread renews while long work goes on. check() is asked before anything is changed."""

    leases: Leases
    lease: Lease
    clock: Callable[[], float]
    ttl_s: float
    lost: str = ""
    stop: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Raise LeaseLostError when it is not ours any more."""
        if self.lost:
            raise LeaseLostError(self.lost)
        self.leases.renew(self.lease, self.clock(), self.ttl_s)

    def beat(self) -> None:
        """Renew until stopped; a store that does not answer may do so in time."""
        while not self.stop.wait(self.ttl_s / RENEWED_PER_LEASE):
            try:
                self.leases.renew(self.lease, self.clock(), self.ttl_s)
            except LeaseLostError as error:
                self.lost = str(error)
                return
            except StoreError:
                continue


@contextmanager
def keeping(leases: Leases, lease: Lease, clock: Callable[[], float], ttl_s: float) -> Iterator[RenewedLease]:
    """Keep a lease alive for as long as the block runs, then give it up."""
    kept = RenewedLease(leases, lease, clock, ttl_s)
    thread = threading.Thread(target=kept.beat, name="lease", daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        kept.stop.set()
        thread.join(ttl_s)
        if not kept.lost:
            leases.give_up(lease)
