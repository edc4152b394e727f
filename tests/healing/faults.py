"""100 faults on a real Slurm, none announced to it: python -m tests.healing.faults [--faults 100] [--nodes 20] [--seed 16].

Real: slurmctld, slurmd, munged, sbatch jobs, scontrol, the watchers as processes. A pipe stands in for /dev/kmsg: nobody
can make a kernel say an Xid without a GPU. The controller heals after each wave: healer.py says what is simulated of it.
"""

import argparse
import os
import random
import re
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from tests.beds import until

from . import slurmbed
from .figures import at, table, where
from .fleet import Watched, ready
from .healer import Healer
from .kernel_lines import DAILY, FAULTS, SELDOM

_DRAINED = re.compile(r"\[(\S+)\] update_node: node (\S+) state set to DRAIN")
WAIT_S = 20.0


def main() -> int:
    """Run and print the table; exit status 1 when a demand does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=16)
    given = parser.parse_args()
    why = slurmbed.missing()
    if why:
        sys.stderr.write(f"healing: {why}\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="flightline-healing-") as text, slurmbed.bed(
        Path(text) / "slurm", given.nodes
    ) as bed:
        return Run(bed, Path(text), given.seed).go(given.faults)


class Run:
    """The run and what was counted."""

    def __init__(self, bed: slurmbed.Bed, place: Path, seed: int) -> None:
        self.bed, self.seed, self.pick = bed, seed, random.Random(seed)
        self.load: list[float] = []
        # Faults come a thousand times as often here as in life: two nodes with the same are no fleet-wide line.
        own: dict[str, object] = {"smi_every_s": 0, "sample_every_s": 0, "budget_percent": 100.0}
        self.nodes = {name: Watched(name, place / name, bed.env, own=own) for name in bed.names}
        self.jobs: dict[str, str] = {}
        self.took_s: list[float] = []
        self.marked_s: list[float] = []
        self.kinds: dict[str, int] = {}
        self.touched = self.sick_jobs_ended = self.missed = self.wrong_reason = self.unrecorded = 0
        self.said: dict[str, float] = {}
        os.environ.update(bed.env)
        self.healer = Healer(place / "incidents.sqlite", self.nodes, random.Random(seed))

    def go(self, faults: int) -> int:
        for one in self.nodes.values():
            one.up()
        try:
            ready(list(self.nodes.values()))
            for name in self.nodes:
                self.jobs[name] = self.bed.sleep_on(name, 3600)
            left = faults
            while left:
                wave = self.pick.sample(sorted(self.nodes), min(left, self.pick.randint(1, 6)))
                self.wave(wave)
                left -= len(wave)
                sys.stderr.write(f"\r{faults - left} of {faults} faults")
            sys.stderr.write("\n")
        finally:
            for one in self.nodes.values():
                one.down()
        return self.table()

    def wave(self, sick: list[str]) -> None:
        """Faults on these nodes at moments of their own, noise on all; then everybody is healed."""
        for name, one in self.nodes.items():
            one.say(*[self.pick.choice(DAILY)(self.pick) for _ in range(5)], priority=6)
            if name not in sick and self.pick.random() < 0.02:
                one.say(self.pick.choice(SELDOM)(self.pick), priority=4)
        for name in sick:
            time.sleep(self.pick.uniform(0.0, 0.3))
            kind = self.pick.choice(sorted(FAULTS))
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
            self.said[name] = self.nodes[name].say(*FAULTS[kind](self.pick))
        self.load.append(os.getloadavg()[0])
        until(lambda: set(self.drained(sick)) == set(sick), WAIT_S, every_s=0.2)
        time.sleep(0.5)
        self.count(sick, self.drained(sick))
        self.heal(sick)

    def drained(self, sick: list[str]) -> dict[str, float]:
        """When the controller took each node out, by its own log."""
        found: dict[str, float] = {}
        for stamp, name in _DRAINED.findall((self.bed.place / "slurmctld.log").read_text(errors="replace")):
            when = datetime.fromisoformat(stamp).timestamp()
            if name in sick and when >= self.said[name] - 0.001:
                found[name] = when
        return found

    def count(self, sick: list[str], drained: dict[str, float]) -> None:
        self.missed += len(set(sick) - set(drained))
        rows = self.bed.run("sinfo", "-h", "-N", "-o", "%N|%T|%E").stdout.splitlines()
        shown = {name: (state, reason) for name, state, reason in (row.split("|", 2) for row in rows)}
        for name in sick:
            if name in drained:
                self.took_s.append(drained[name] - self.said[name])
            marker = self.nodes[name].marker()
            if marker:
                since = datetime.fromisoformat(marker["since"].replace("Z", "+00:00")).timestamp()
                self.marked_s.append(since - self.said[name])
            reason = shown[name][1]
            self.wrong_reason += not re.match(r"flightline: \S+ .+ run watch-", reason)
            self.unrecorded += not self.nodes[name].records()
            self.sick_jobs_ended += self.bed.job_state(self.jobs[name]) != "RUNNING"
        for name, job in self.jobs.items():
            if name not in sick:
                self.touched += "drain" in shown[name][0] or self.bed.job_state(job) != "RUNNING"

    def heal(self, sick: list[str]) -> None:
        for name in sick:
            self.bed.run("scancel", self.jobs[name])  # the job ends, as the drain waits for
        self.healer.heal(sick)
        for name in sick:
            self.jobs[name] = self.bed.sleep_on(name, 3600)
        # Read before the next fault: a pipe has no numbers to read again from, as /dev/kmsg has.
        for name in sick:
            self.nodes[name].say("healed", priority=6)
        time.sleep(0.3)

    def table(self) -> int:
        took, slurm = sorted(self.took_s), self.healer.slurm
        rows = [
            ("when and where; nodes; seed", f"{where(self.load)}; {len(self.nodes)}; {self.seed}"),
            ("faults injected, of kinds", f"{sum(self.kinds.values())}, {len(self.kinds)}"),
            ("drained", f"{len(took)}"),
            ("kernel line to drained, p50", f"{at(took, 0.5) * 1000:.0f} ms"),
            ("kernel line to drained, p99", f"{at(took, 0.99) * 1000:.0f} ms"),
            ("kernel line to quarantine decided, p50, p99", f"{_two(self.marked_s)}"),
            ("faults missed", f"{self.missed}"),
            ("drains without check, device and run as the reason", f"{self.wrong_reason}"),
            ("faults without a record", f"{self.unrecorded}"),
            ("jobs on healthy nodes touched", f"{self.touched}"),
            ("running jobs on sick nodes ended by the drain", f"{self.sick_jobs_ended}"),
            ("nodes returned with proof; of them after a person mended them", f"{slurm.returned}; {self.healer.held}"),
            ("nodes returned while still sick; nodes not returned", f"{slurm.returned_sick}; {self.healer.stranded}"),
        ]
        sys.stdout.write(table(rows))
        bad = self.missed or self.wrong_reason or self.unrecorded or self.touched or self.sick_jobs_ended
        return 1 if bad or slurm.returned_sick or self.healer.stranded else 0


def _two(values: list[float]) -> str:
    ordered = sorted(values)
    return f"{at(ordered, 0.5) * 1000:.0f} ms, {at(ordered, 0.99) * 1000:.0f} ms"


if __name__ == "__main__":
    sys.exit(main())
