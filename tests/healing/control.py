"""Controllers over a world of the tests."""

from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from flightline.healing.controller import Controller
from flightline.healing.journal.lease import RenewedLease
from flightline.healing.journal.ledger import SqliteLedger
from flightline.healing.plan.observe import Sighting
from flightline.healing.site import SitePolicy
from flightline.healing.steps.ports import Ports
from tests.unit.healing.made import trouble


@dataclass
class Clock:
    """Time that passes when the test says so."""

    now: datetime = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)

    def __call__(self) -> str:
        return self.now.isoformat(timespec="milliseconds")

    def seconds(self) -> float:
        return self.now.timestamp()

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Running(Clock):
    """The real time."""

    def __call__(self):
        self.now = type(self.now).now(self.now.tzinfo)
        return super().__call__()

    def seconds(self):
        self()
        return super().seconds()


def groups(world):
    return dict.fromkeys(world.state()["nodes"], "p5")


def sighting(world, clock, host):
    """What a preflight would say of a node now."""
    fault = world.node(host)["fault"]
    found = (trouble(fault, serial=f"serial-{host}"),) if fault else ()
    return Sighting(host, f"i-{host}", "p5", clock(), f"run at {clock()}", "quick", found, good=frozenset({"xid"}))


@contextmanager
def controller(store, world, clock, site=None, owner="one", ports=None):
    """A controller that has the lease."""
    with SqliteLedger(store) as ledger:
        lease = ledger.acquire(owner, clock.seconds(), 60)
        assert lease is not None, f"{ledger.holder()} has the lease"
        kept = RenewedLease(ledger, lease, clock.seconds, 60)
        given = ports or Ports(world, world, world)
        yield Controller(ledger, given, site or SitePolicy(), kept, clock=clock)
        ledger.give_up(lease)
