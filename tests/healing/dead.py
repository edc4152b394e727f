"""100 hosts that die on a real Slurm, healed by the controller: python -m tests.healing.dead [--deaths 100] [--nodes 20] [--seed 31].

Real: slurmctld with its own time-out, slurmd that are killed or stopped by signals, jobs. What a host, EC2 and a neighbour say of
it is simulated, as is the proof; lost_min and Slurm's time-out are seconds here.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from flightline.healing.journal.incident import DONE, NOT_DONE, NOT_YET
from flightline.healing.journal.ledger import SqliteLedger
from flightline.healing.journal.stamps import seconds
from flightline.healing.plan.observe import from_claim
from flightline.healing.plan.planner import OutsideView
from flightline.healing.site import SitePolicy
from flightline.healing.steps.ports import NodeFacts, Ports, StepOutcome, Verified
from flightline.healing.steps.slurm import SlurmScheduler
from flightline_node.act.reach import SILENT
from flightline_node.model import Remedy

from . import slurmbed
from .control import Running, controller
from .figures import at, table, where

KINDS = {
    "daemon killed": [Remedy.RESTART_APP],
    "power off, EC2 says stopped": [Remedy.REBOOT],
    "network cut, EC2 says running": [Remedy.REBOOT],
    "network cut, and back by itself": [],
}
"""What dies, and the steps that bring it back."""
DAEMON, POWER, CUT, BACK = KINDS
POLICY = SitePolicy(window_h=0.0, lost_min=0.3, lost_percent=10.0)
MOST_AT_ONCE = 6
"""Of 20: a third of them would be a breaker's."""
WAVE_S = 240.0


class Around:
    """The hosts, EC2 and the preflight. dead: host -> what happened to it."""

    def __init__(self, bed):
        self.bed, self.dead, self.boots, self.steps = bed, {}, Counter(), {}

    def die(self, host, kind):
        self.dead[host], self.steps[host] = kind, []
        slurmd = self.bed._running[host]
        if kind in (DAEMON, POWER):
            slurmd.kill()
            slurmd.wait()
        else:
            slurmd.send_signal(signal.SIGSTOP)

    def live(self, host):
        kind = self.dead.pop(host)
        if kind in (DAEMON, POWER):
            self.bed.node_up(host)
        else:
            self.bed._running[host].send_signal(signal.SIGCONT)

    def facts(self, hosts, token):
        return {host: NodeFacts(f"b{self.boots[host]}") for host in hosts if self.dead.get(host, DAEMON) == DAEMON}

    def reach(self, asked, token):
        return {one: dict.fromkeys(targets, SILENT) for one, targets in asked.items()}

    def repair(self, host, step, incident):
        if host not in self.facts([host], 0):
            return StepOutcome(NOT_DONE, "no connection")
        self.steps[host].append(step)
        self.live(host)
        return StepOutcome(DONE)

    def release(self, *_):
        """No watcher runs here."""

    def seen(self, ids):
        kinds = {one: self.dead.get(one.removeprefix("i-")) for one in ids}
        return {
            one: OutsideView("EC2 says stopped", True) if kind == POWER else OutsideView("EC2 says running")
            for one, kind in kinds.items()
        }

    def reboot(self, incident):
        self.steps[incident.host].append(Remedy.REBOOT)
        self.boots[incident.host] += 1
        self.live(incident.host)
        return StepOutcome(NOT_YET)

    def _never(self, *_):
        raise AssertionError("POLICY replaces no instance")

    before = replace = successor = settle = _never

    def prove(self, hosts, level):
        return {host: Verified(host not in self.dead, "R1") for host in hosts}


class Run:
    def __init__(self, bed, place, seed):
        self.bed, self.pick, self.around, self.slurm = bed, random.Random(seed), Around(bed), SlurmScheduler()
        self.store, self.groups = place / "incidents.sqlite", dict.fromkeys(bed.names, "p5")
        self.kinds, self.back_s, self.wrong, self.load = Counter(), [], [], []
        SqliteLedger(self.store).close()

    def go(self, deaths):
        jobs = {name: self.bed.sleep_on(name, 7200) for name in self.bed.names}
        while (left := deaths - sum(self.kinds.values())) > 0:
            sick = self.pick.sample(sorted(self.bed.names), min(left, self.pick.randint(3, MOST_AT_ONCE)))
            self.wave(sick)
            ended = [name for name in jobs if name not in sick and self.bed.job_state(jobs[name]) != "RUNNING"]
            self.wrong += [f"{name}: its job was touched" for name in ended]
            self.bed.run("scancel", *(jobs[name] for name in sick), check=False)
            jobs |= {name: self.bed.sleep_on(name, 7200) for name in sick}
            self.load.append(os.getloadavg()[0])
            sys.stderr.write(f"\r{sum(self.kinds.values())} of {deaths} deaths")
        return self.table()

    def wave(self, sick):
        """These die at moments of their own; rounds of the controller until all are back."""
        kinds, began = {}, {}
        for host in sick:
            time.sleep(self.pick.uniform(0, 0.5))
            kinds[host], began[host] = self.pick.choice(list(KINDS)), time.time()
            self.around.die(host, kinds[host])
            self.kinds[kinds[host]] += 1
        end, left, lost = time.monotonic() + WAVE_S, set(sick), set()
        while left and time.monotonic() < end:
            places = self.round()
            lost |= {host for host in left if places[host].lost}
            for host in [one for one in lost if kinds[one] == BACK and one in self.around.dead]:
                self.around.live(host)
            for host in [one for one in left & lost if not places[one].out]:
                self.back_s.append(time.time() - began[host])
                left.discard(host)
        self.wrong += [f"{host}: {kinds[host]}: not back" for host in left]
        for host in sick:
            if self.around.steps[host] != KINDS[kinds[host]]:
                self.wrong.append(f"{host}: {kinds[host]}: {[str(step) for step in self.around.steps[host]]}")

    def round(self):
        """One of the controller, each second; what Slurm says after it."""
        told = (from_claim(host, f"i-{host}", "p5", place, place.since) for host, place in self.places().items())
        ports = Ports(self.slurm, self.around, self.around, self.around)
        with controller(self.store, None, Running(), POLICY, ports=ports) as one:
            one.round([each for each in told if each], self.groups)
        time.sleep(1)
        return self.places()

    def places(self):
        return self.slurm.places(self.groups)

    def table(self):
        with SqliteLedger(self.store) as ledger:
            known = sorted(seconds(one.known_at) - seconds(one.opened_at) for one in ledger.incidents())
        back = sorted(self.back_s)
        rows = [
            ("when and where; nodes", f"{where(self.load)}; {len(self.groups)}"),
            ("hosts that died", "; ".join(f"{many} {kind}" for kind, many in sorted(self.kinds.items()))),
            ("back in service with proof", f"{len(back)}"),
            (f"Slurm's own time-out ({slurmbed.SLURMD_TIMEOUT_S} s) to known, most", f"{known[-1]:.1f} s"),
            ("death to service, p50, p99", f"{at(back, 0.5):.0f} s, {at(back, 0.99):.0f} s"),
            ("wrong steps, hosts not back, jobs on healthy hosts touched", f"{len(self.wrong)}"),
        ]
        sys.stdout.write(f"\n{table(rows)}")
        sys.stderr.write("".join(f"{one}\n" for one in self.wrong))
        return 1 if self.wrong or known[-1] > 60 else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("deaths", 100), ("nodes", 20), ("seed", 31)):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    if why := slurmbed.missing():
        sys.stderr.write(f"healing: {why}\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="flightline-dead-") as text, slurmbed.bed(
        Path(text) / "slurm", given.nodes
    ) as bed:
        os.environ.update(bed.env)
        return Run(bed, Path(text), given.seed).go(given.deaths)


if __name__ == "__main__":
    sys.exit(main())
