"""Each actor's own code in random order on a simulated Slurm: python -m tests.healing.sequences [--steps 100000] [--seed 31].

A step is one request to the scheduler, or something that happens: a fault, a repair, a person, a kill, a silent slurmctld,
a clock that jumps. Every actor waits for its turn at each request, so any order comes. Simulated: slurmctld, and the lock
that keeps what runs on one node apart; the remediator is kept apart from it likewise (docs/healing.md says why).
"""

import argparse
import random
import sys
import tempfile
import threading
from collections import Counter
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from unittest.mock import patch

from flightline.healing import act
from flightline.healing.journal.incident import BREAKER_RESET, Moment, advance
from flightline.healing.journal.incident import DONE as STEP_DONE
from flightline.healing.journal.ledger import SqliteLedger
from flightline.healing.journal.machine import EventKind, NodeState
from flightline.healing.plan.seen import LastSeen
from flightline.healing.site import SitePolicy
from flightline.healing.steps.ports import NodeFacts, Ports, StepOutcome, Verified
from flightline.healing.steps.slurm import SchedulerError, SlurmScheduler
from flightline.store.sqlite import Run
from flightline_node import selfcheck
from flightline_node.watch import claim, rule, service, slurm
from flightline_node.watch import marker as marking
from flightline_node.watch.latch import drain_reason
from flightline_node.watch.tool import Said

from .control import Clock, controller
from .slurmctld import Slurmctld

NAMES = [f"n{number}" for number in range(10)]
REASONS = ("xid.79", "xid.48")


class Cut(BaseException):
    """It is killed here."""


HERE = threading.local()
"""actor: whose thread it is."""


class Actor:
    """Code that runs until its next request, and then waits for its turn."""

    def __init__(self, name, code):
        self.name, self.killed, self.trouble = name, False, None
        self._go, self._parked = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, args=(code,), daemon=True)
        self._thread.start()

    def _run(self, code):
        HERE.actor = self
        self._go.acquire()
        try:
            if not self.killed:
                code()
        except Cut:
            pass
        except BaseException as error:  # told where the steps are taken
            self.trouble = error
        self.over = True
        self._parked.release()

    over = False

    def turn(self, killed=False):
        self.killed = killed
        self._go.release()
        self._parked.acquire()
        if self.trouble:
            raise self.trouble

    def park(self):
        self._parked.release()
        self._go.acquire()
        if self.killed:
            raise Cut


def park(*_):
    HERE.actor.park()


class Sequences:
    def __init__(self, place, seed):
        self.place, self.pick, self.jumps = place, random.Random(seed), seed % 2
        self.clock = Clock(datetime.now(timezone.utc))
        self.cluster = Slurmctld(NAMES, park, self.clock.seconds)
        self.sick, self.actors, self.done, self.jumped, self.runs = {}, {}, Counter(), False, 0
        self.groups = dict.fromkeys(NAMES, "p5")
        for name in NAMES:
            self.where(name).mkdir()
        self.ledger = place / "runs.sqlite"

    def where(self, name):
        return self.place / name

    @contextmanager
    def world(self):
        """The node library and the control side talk to the simulated Slurm."""

        def run(argv, *_):
            try:
                return Said(0, self.cluster.ask(argv))
            except slurm.AwayError as error:
                return Said(1, str(error))

        def asked(_, *argv):
            if argv[0] == "squeue":
                return ""
            try:
                return self.cluster.ask(argv)
            except slurm.AwayError as error:
                raise SchedulerError(str(error)) from None

        pauses = patch.object(rule, "PAUSES_S", (0.0,) * 4)
        with patch.object(slurm, "run", run), patch.object(SlurmScheduler, "_run", asked), pauses:
            yield

    # What runs on a node.

    def watch(self, name):
        """As the watcher's hands: the marker, the drain, what came of it."""
        marker = marking.read(self.where(name))
        if marker and marker["scheduler"]["state"] in ("pending", "suspect"):
            said = drain_reason(marker)
            eager = not self.cluster.nodes[name]["extra"] and not self.cluster.out(name)
            again = marking.is_suspect(marker)
            outcome = slurm.drain(name, said, self.cluster.ask, sleep=park, again=again, eager=eager)
            marker["scheduler"] = {"kind": "slurm", "state": outcome.state}
            if marking.read(self.where(name)):  # a person's overruling may have come between
                marking.keep(self.where(name), marker)
        elif marker is None:
            with suppress(slurm.AwayError):  # tried again
                slurm.lift(name, self.cluster.ask, lambda there: there.by == claim.WATCH)

    def hook(self, name, who):
        place = self.where(name)
        told = service.overruled(name, place, str(place / "none"))
        found = [{"check": "xid", "status": "FAIL", "reason": self.sick.get(name), "message": "seen"}] * (
            name in self.sick
        )
        good = [{"check": "xid", "status": "PASS"}]
        verdict = {"verdict": "no-go" if found else "go", "level": "quick", "findings": found or good}
        record = selfcheck.held({"host": name, **verdict}, place, told)
        service.settle(name, record, selfcheck.reason(record, who), who == claim.HEALTH, who, place)

    # The control side: its ports, and one round.

    def facts(self, hosts, token):
        return {host: NodeFacts("b", marking.raw(self.where(host))) for host in hosts}

    def reach(self, asked, token):
        return {}

    def repair(self, host, step, incident):
        self.sick.pop(host, None)
        return StepOutcome(STEP_DONE)

    def release(self, host, run, token, judged_at):
        if marking.raw(self.where(host)):
            marking.release(run, None, "b", self.where(host), judged_at)

    def prove(self, hosts, level):
        self.runs += 1
        return {host: Verified(host not in self.sick, f"R{self.runs}", at=marking.stamp()) for host in hosts}

    def round(self):
        self.clock.forward(70)
        ports = Ports(SlurmScheduler(), self, self)
        with controller(self.ledger, None, self.clock, SitePolicy(lost_min=0), ports=ports) as one:
            told = act._markers(LastSeen(Run("", ""), groups=self.groups), ports, one.ledger, 1, lambda _: None)
            one.round(told, self.groups)

    # What happens.

    def fault(self, name):
        reason = self.sick.setdefault(name, self.pick.choice(REASONS[: 1 + (self.pick.random() < 0.3)]))
        if marking.raw(self.where(name)) is None:
            found = {
                "check": "xid",
                "status": "FAIL",
                "message": "seen",
                "remedy": "REBOOT",
                "device": {},
                "reason": reason,
            }
            about = {"schema": marking.SCHEMA, "since": self.clock(), "by": marking.BY, "run": "W", "latched": {}}
            marking.keep(
                self.where(name), {**about, "findings": [found], "scheduler": {"kind": "slurm", "state": "pending"}}
            )

    def person(self, name):
        out = self.cluster.out(name)
        self.cluster.nodes[name].update(state="IDLE" if out else "IDLE+DRAIN", reason="" if out else "ada: mine")

    def let_go(self):
        if self.cluster.away:
            return
        self.cluster.pause, kept = (lambda _: None), self.cluster.pause
        SlurmScheduler().let_go(NAMES)
        self.cluster.pause = kept
        with SqliteLedger(self.ledger) as ledger:
            for one in ledger.incidents(only_open=True):
                retried = one.state is NodeState.HELD
                ledger.save(advance(one, Moment(self.clock(), EventKind.NOTED, "ada", about=BREAKER_RESET)), None)
                if retried:
                    (again,) = ledger.incidents(only_open=True, name=one.host)
                    ledger.save(advance(again, Moment(self.clock(), EventKind.RETRIED, "ada")), None)
            ledger.reset("p5")

    def happens(self, name):
        what = self.pick.choices(
            (
                "fault",
                "watch",
                "prolog",
                "epilog",
                "health",
                "round",
                "kill",
                "person",
                "mend",
                "away",
                "jump",
                "let_go",
            ),
            (6, 20, 4, 2, 8, 1, 2, 1, 4, 2, 1, 0.3),
        )[0]
        self.done[what] += 1
        busy = name in self.actors or "remediator" in self.actors
        if what == "kill" and name in self.actors:
            self.actors.pop(name).turn(killed=True)
        elif what == "fault":
            self.fault(name)
        elif what == "mend":
            self.sick.pop(name, None)
        elif what == "away":
            self.cluster.away = not self.cluster.away
        elif what == "jump" and self.jumps:
            self.cluster.ahead_s, self.jumped = self.pick.choice([-7200.0, 0.0, 7200.0]), True
        elif what == "person" and not busy:
            self.person(name)
        elif what == "let_go" and not self.actors and self.ledger.exists():
            self.let_go()
        elif what == "round" and not self.actors:
            self.actors["remediator"] = Actor("remediator", self.round)
        elif what in ("watch", "prolog", "epilog", "health") and not busy:
            code = (lambda: self.watch(name)) if what == "watch" else (lambda: self.hook(name, what))
            self.actors[name] = Actor(name, code)

    def step(self):
        self.clock.forward(1)
        if self.actors and self.pick.random() < 0.7:
            name = self.pick.choice(sorted(self.actors))
            self.actors[name].turn(killed=name == "remediator" and self.pick.random() < 0.02)
            if self.actors[name].over:
                del self.actors[name]
        else:
            self.happens(self.pick.choice(NAMES))
        self.check()

    def check(self):
        """At most the budget are out for one reason; with clocks that lie, the breaker's share."""
        claims = [claim.read(node["reason"]) for name, node in self.cluster.nodes.items() if self.cluster.out(name)]
        out = Counter(one.reason for one in claims if one and not one.mark)
        most = rule.most(len(NAMES), 100 / 3 if self.jumped else 10.0)
        assert max(out.values(), default=0) <= most, f"{out} out, at most {most}"

    def end(self):
        """Once all is mended and nobody is killed, every node comes back, and no mark or marker stays."""
        self.cluster.away = False
        for name in [*self.actors]:
            while not self.actors[name].over:
                self.actors[name].turn()
        self.actors.clear()
        self.sick.clear()
        for node in self.cluster.nodes.values():
            if node["reason"] == "ada: mine":
                node.update(state="IDLE", reason="")
        for number in range(300):
            for code in (self.round, *(lambda name=name, what=what: what(name) for name in NAMES for what in (self.watch, lambda one: self.hook(one, claim.HEALTH)))):  # fmt: skip
                one = Actor("end", code)
                while not one.over:
                    one.turn()
                self.check()
            if number % 5 == 4:
                self.let_go()
            left = [name for name in NAMES if self.cluster.out(name) or marking.raw(self.where(name)) or self.cluster.nodes[name]["extra"]]  # fmt: skip
            if not left:
                return
        raise AssertionError(f"no end for {left}: {[self.cluster.line(name) for name in left]}")


def run(steps, seed):
    """So many steps in sequences of a thousand; what happened, counted."""
    done = Counter()
    for number in range(max(1, steps // 1000)):
        memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # each write is synced, and a disk would be slow
        with tempfile.TemporaryDirectory(prefix="flightline-sequences-", dir=memory) as place:
            one = Sequences(Path(place), seed + number)
            with one.world():
                try:
                    for _ in range(min(steps, 1000)):
                        one.step()
                    one.end()
                except BaseException as error:
                    error.add_note(f"seed {seed + number}")
                    raise
            done += one.done
    return done


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=31)
    given = parser.parse_args()
    sys.stdout.write(f"{given.steps} steps: {dict(run(given.steps, given.seed))}\n")
