"""Healthy months of 100 nodes in compressed time, then a fault on each: python -m tests.healing.month [--write].

Every node's own watcher reads its kernel's lines, its samples of /sys and EFA's counters and its nvidia-smi rows, as fast as they
come, with the stamps of 30 days. A quarantine is a good node taken out of service; a fault that is not drained is one missed.
"""

import argparse
import json
import random
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from flightline_node.ask.efa import efa_counters
from flightline_node.ask.sysfs import moving
from flightline_node.judge.checks.efa_counters import ERRORS
from flightline_node.watch import samples, smi, watcher
from flightline_node.watch.intake import Intake
from tests.unit.watch.scene import Scene
from tests.unit.watch.test_samples import device
from tests.unit.watch.test_smi import rows

from . import figures
from .kernel_lines import DAILY, FAULTS, SPARED, day

DAY_S, LINES, DRAINED_S = 86_400, 200, 30.0
PAGE = Path(__file__).parents[2] / "docs/healing.md"
BEGIN, END = (f"<!-- {word}: made by python -m tests.healing.month --write -->" for word in ("begin", "end"))


class Lived(NamedTuple):
    """A node's month. wrong: what took it out while it was healthy; kind: the fault after it."""

    lines: int
    samples: int
    wrong: str
    kind: str
    drained: bool


class Month:
    """One node. Its clock is the test's: a storm of a day is none."""

    def __init__(self, place: Path, seed: int) -> None:
        self.place, self.pick = place, random.Random(seed)
        self.now_s = self.booted_s = 0.0
        self.lines = self.samples = self.boots = self.corrected = 0
        for number in range(32):
            device(place / "root", f"rdmap{number}s0")
        (place / "root/sys/devices/system/edac/mc/mc0").mkdir(parents=True)
        root = str(place / "root")
        self.sysfs, self.efa = json.loads(moving(root)), json.loads(efa_counters(root, ERRORS))
        self.boot()

    def boot(self) -> None:
        """A watcher; after a reboot another one, with a kernel that counts from nothing."""
        self.boots, self.booted_s = self.boots + 1, self.now_s
        where = self.place / f"boot{self.boots}"
        where.mkdir()
        self.scene = Scene(where).with_slurm().boot()
        self.scene.watcher._intake = Intake(lambda: self.now_s)
        self.sampled = samples.SampleFeed(self.scene.watcher._rules, "/", "", 0.0, 0.0)
        self.listed = smi.SmiFeed(self.scene.watcher._rules, "", 1.0)

    def end(self) -> None:
        self.scene.watcher.end()
        self.scene.close()

    def say(self, messages: list[str]) -> None:
        """Spread over a day."""
        for text in messages:
            self.now_s += DAY_S / len(messages)
            place = f"{self.scene.sequence},{int((self.now_s - self.booted_s) * 1e6)}"
            self.scene.pour(f"{self.pick.choice((3, 4, 6))},{place},-;{text}\n")
        self.lines += len(messages)
        while self.scene.waits() or self.scene.watcher._pending:
            self.scene.watcher.step(0)

    def sample(self, listed: list[str]) -> None:
        """What counters and nvidia-smi say now."""
        self.sysfs["edac"]["mc0"] = {"ce_count": str(self.corrected), "ue_count": "0"}
        news = json.dumps({"sysfs.json": json.dumps(self.sysfs), "efa-counters.json": json.dumps(self.efa)})
        self.scene.watcher._found(self.sampled._sample(news) + self.listed._judged(listed))
        self.samples += 1

    def live(self, days: int) -> str:
        """So many days; what took it out of service, '' where nothing did."""
        reboots = set(self.pick.sample(range(1, days), min(2, days - 1)))
        for number in range(days):
            if number in reboots:
                self.end()
                self.boot()
            self.say(day(self.pick, LINES, boots=number in (0, *reboots)))
            if self.pick.random() < 1 / 15:
                self.say([message(self.pick) for message in SPARED])
            self.corrected += self.pick.randint(0, 2)
            for name in self.pick.sample(sorted(self.efa), 4):
                self.efa[name][self.pick.choice(sorted(self.efa[name]))] += self.pick.randint(0, 50)
            odd = rows(ecc="3") if self.pick.random() < 0.1 else rows()[:7] if self.pick.random() < 0.1 else rows()
            for sample in (rows(), odd, rows()):  # a device shows odd values while it is being reset
                self.sample(sample)
            if marker := self.scene.marker():
                return f"day {number + 1}: {marker['findings'][0]['message']}"
        return ""

    def fall(self, kind: str) -> bool:
        """A fault; was it drained?"""
        self.say([*FAULTS[kind](self.pick), *[DAILY[0](self.pick)] * 5])
        return bool(self.scene.until(self.scene.drained, DRAINED_S))


def lived(seed: int, days: int) -> Lived:
    """One node's month and fault."""
    watcher.SETTLE_S = watcher.LONGEST_PAUSE_S = 0.0
    with tempfile.TemporaryDirectory(prefix="flightline-month-", ignore_cleanup_errors=True) as place:
        one = Month(Path(place), seed)
        wrong, kind = one.live(days), sorted(FAULTS)[seed % len(FAULTS)]
        drained = not wrong and one.fall(kind)
        one.end()
        return Lived(one.lines, one.samples, wrong, kind, drained)


def table(found: list[Lived], days: int, seed: int) -> str:
    """What the page shows. 3 / n: with 95 % certainty a rate is below that when n trials had none."""
    wrong, right, sick = (sum(map(bool, each)) for each in zip(*((o.wrong, o.drained, not o.wrong) for o in found)))
    bound = "" if wrong else f" (with 95 % certainty below {3 / (len(found) * days):.2%} of node-days)"
    rows_of_page = [
        ("nodes, days of each, seed", f"{len(found)}, {days}, {seed}"),
        ("kernel lines; samples", f"{sum(o.lines for o in found):,}; {sum(o.samples for o in found):,}"),
        ("healthy nodes taken out", f"{wrong}{bound}"),
        ("faults after it, of kinds; drained", f"{sick}, {len({one.kind for one in found})}; {right}"),
        ("precision of drains", f"{right / max(1, right + wrong):.0%} ({right} of {right + wrong})"),
        ("recall of drains", f"{right / max(1, sick):.0%} ({right} of {sick})"),
    ]
    return figures.table(rows_of_page, "simulated lines and counters, the watcher's own code |")


def main() -> int:
    """Run and print; exit status 1 when a healthy node was taken out, or a sick one was not."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("nodes", 100), ("days", 30), ("seed", 31)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--write", action="store_true", help="put the table into docs/healing.md")
    given = parser.parse_args()
    seeds = range(given.seed * 1000, given.seed * 1000 + given.nodes)
    with ProcessPoolExecutor() as pool:
        found = list(pool.map(partial(lived, days=given.days), seeds))
    sys.stdout.write(made := table(found, given.days, given.seed))
    for seed, one in zip(seeds, found, strict=True):
        if one.wrong or not one.drained:
            sys.stderr.write(f"seed {seed}: {one.wrong or f'{one.kind}: not drained'}\n")
    if given.write:
        head, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(f"{head}{BEGIN}\n{made}{END}{rest.partition(END)[2]}")
    return 0 if all(one.drained for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
