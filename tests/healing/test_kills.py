"""Controllers that die at any point, and two at once: real processes, a real SQLite file, a simulated world."""

import os
import random
import signal
import time
import traceback

import pytest

from flightline.healing.controller import Controller
from flightline.healing.journal import ledger as ledgers
from flightline.healing.journal.lease import LeaseLostError, RenewedLease
from flightline.healing.journal.ledger import ConflictError, SqliteLedger
from flightline.healing.site import SitePolicy
from flightline.healing.steps.ports import Ports
from tests.healing.control import Clock, Running, controller, groups, sighting
from tests.healing.rules import check
from tests.healing.world import World

HOSTS = [f"n{number}" for number in range(1, 31)]
FAULTS = {"n1": "REBOOT", "n2": "RESET_GPU", "n3": "RESTART_APP", "n4": "REBOOT", "n5": "BROKEN"}
MOST_OUT = 3
LEASE_S = 70
SHORT_LEASE_S = 1.0
MOST_POINTS = 45
FIRST_POINTS = 30


class Points:
    """Counts the places where a controller may die, and dies at one of them: by SIGKILL, nothing is cleaned up."""

    def __init__(self, at):
        self.left = at

    def __call__(self, *_):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class MortalLedger(SqliteLedger):
    """A ledger that may die before and after each write."""

    points = staticmethod(lambda *_: None)

    def save(self, incident, lease):
        self.points("save")
        kept = super().save(incident, lease)
        self.points("saved")
        return kept


def born(work):
    """Run in a child process; its number."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(3)
        os._exit(0)
    return child


def live(store, world, clock, rounds, site=None, owner="one"):
    for number in range(rounds):
        clock.forward(30)
        with controller(store, world, clock, site, owner) as one:
            one.round([sighting(world, clock, host) for host in HOSTS] if number == 0 else [], groups(world))


def mortal(store, world, clock, at, monkeypatch):
    def work():
        points = Points(at)
        world.pause = points
        MortalLedger.points = staticmethod(points)
        monkeypatch.setattr("tests.healing.control.SqliteLedger", MortalLedger)
        live(store, world, clock, 20)

    return os.waitpid(born(work), 0)[1]


@pytest.mark.parametrize("seed", range(50))
def test_killed_at_a_random_point(tmp_path, monkeypatch, seed):
    rng = random.Random(seed)
    world, clock, store = World(tmp_path / "world").make(HOSTS, FAULTS), Clock(), tmp_path / "runs.sqlite"
    killed = 0
    for _ in range(3):
        status = mortal(store, world, clock, rng.randint(1, MOST_POINTS if killed else FIRST_POINTS), monkeypatch)
        killed += os.WIFSIGNALED(status)
        assert os.WIFSIGNALED(status) or status == 0
        check(world, MOST_OUT, healed=False)
        clock.forward(20 * 30 + LEASE_S)
    assert killed
    clock.forward(31 * 60)
    live(store, world, clock, 60)
    check(world, MOST_OUT)
    with SqliteLedger(store) as ledger:
        states = {one.host: str(one.state) for one in ledger.incidents()}
        assert all(one.pending is None for one in ledger.incidents())
    assert {host for host, state in states.items() if state == "held"} == {"n5"}
    assert [host for host, node in world.state()["nodes"].items() if node["out"]] == ["n5"]


def test_two_at_once(tmp_path, monkeypatch):
    """Both run for real and fall asleep in the middle of steps for longer than their lease lasts."""
    faults = {f"n{number}": ("REBOOT", "RESET_GPU", "RESTART_APP")[number % 3] for number in range(1, 10)}
    world, store = World(tmp_path / "world").make(HOSTS, faults), tmp_path / "runs.sqlite"
    monkeypatch.setattr(ledgers, "SKEW_S", 0.0)
    SqliteLedger(store).close()
    children = [born(lambda name=name: one_of_two(name, store, world)) for name in ("one", "two")]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    check(world, MOST_OUT, healed=False)
    assert not is_sick(world)
    with SqliteLedger(store) as ledger:
        assert ledger.acquire("last", time.time() + 3600, 1).token > 3


def is_sick(world):
    return any(node["fault"] not in ("", "BROKEN") for node in world.state()["nodes"].values())


def one_of_two(name, store, world):
    rng, clock, until = random.Random(name), Running(), time.monotonic() + 90

    def doze(where):
        # Not between the lease's check and an order to the scheduler: it knows no token (docs/healing.md).
        if where not in ("drain", "resume") and rng.random() < 0.3:
            time.sleep(SHORT_LEASE_S * 1.5)

    world.pause = doze
    while time.monotonic() < until and is_sick(world):
        with SqliteLedger(store) as ledger:
            lease = ledger.acquire(name, clock.seconds(), SHORT_LEASE_S)
            if lease is None:
                time.sleep(0.05)
                continue
            one_round(ledger, RenewedLease(ledger, lease, clock.seconds, SHORT_LEASE_S), world, clock)


def one_round(ledger, kept, world, clock):
    try:
        made = Controller(ledger, Ports(world, world, world), SitePolicy(repair_min=0.05), kept, clock=clock)
        made.round([sighting(world, clock, host) for host in HOSTS], groups(world))
    except (LeaseLostError, ConflictError):
        return
    ledger.give_up(kept.lease)
