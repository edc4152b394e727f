"""Healthy months of 100 nodes in compressed time, then a fault on each: python -m tests.healing.month [--write].

Every node's own watcher reads its kernel's lines, its samples of /sys and EFA's counters and its nvidia-smi rows, as fast as they
come, with the stamps of 30 days. A quarantine is a good node taken out of service; a fault that is not drained is one missed.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from flightline_node.ask.efa import efa_counters
from flightline_node.ask.sysfs import moving
from flightline_node.judge.checks.efa_counters import ERRORS
from flightline_node.watch import samples, smi, watcher
from flightline_node.watch.intake import Intake
from tests.unit.watch.scene import Scene
from tests.unit.watch.test_samples import device
from tests.unit.watch.test_smi import rows

from .kernel_lines import DAILY, FAULTS, SPARED, day

DAY_S = 86_400
PAGE = Path(__file__).parents[2] / "docs/healing.md"
BEGIN, END = (f"<!-- {word}: made by python -m tests.healing.month --write -->" for word in ("begin", "end"))
DRAINED_S = 30.0


@dataclass
class Lived:
    """A node's month, and the fault after it."""

    lines: int
    samples: int
    wrong: str
    kind: str
    drained: bool


class Month:
    """One node. Its clock is the test's: a storm of a day is none."""

    def __init__(self, place: Path, seed: int) -> None:
        self.place, self.pick, self.now_s, self.lines, self.samples, self.boots = (
            place,
            random.Random(seed),
            0.0,
            0,
            0,
            0,
        )
        for number in range(32):
            device(place / "root", f"rdmap{number}s0")
        controller = place / "root/sys/devices/system/edac/mc/mc0"
        controller.mkdir(parents=True)
        for name in ("ce_count", "ue_count"):
            (controller / name).write_text("0\n")
        self.sysfs, self.efa = (
            json.loads(text) for text in (moving(place / "root"), efa_counters(str(place / "root"), ERRORS))
        )
        self.boot()

    def boot(self) -> None:
        """A watcher; after a reboot another one, with a kernel that counts from nothing."""
        self.boots += 1
        where = self.place / f"boot{self.boots}"
        where.mkdir()
        self.scene, self.booted_s = Scene(where).with_slurm().boot(), self.now_s
        self.scene.watcher._intake = Intake(lambda: self.now_s)
        rules = self.scene.watcher._rules
        self.sampled = samples.SampleFeed(rules, "/", "", 0.0, 0.0)
        self.listed = smi.SmiFeed(rules, "", 1.0)

    def say(self, messages: list[str]) -> None:
        """A day's lines, an hour apart or a second, as they come."""
        for text in messages:
            self.now_s += DAY_S / len(messages)
            us = int((self.now_s - self.booted_s) * 1e6)
            self.scene.pour(f"{self.pick.choice((3, 4, 6))},{self.scene.sequence},{us},-;{text}\n")
            self.lines += 1
        while self.scene.waits() or self.scene.watcher._pending:
            self.scene.watcher.step(0)

    def sample(self, rows_of_smi: list[str]) -> None:
        """What counters and nvidia-smi say now."""
        news = json.dumps({"sysfs.json": json.dumps(self.sysfs), "efa-counters.json": json.dumps(self.efa)})
        for found in (self.sampled._sample(news), self.listed._judged(rows_of_smi)):
            self.scene.watcher._found(found)
        self.samples += 1

    def live(self, days: int, lines: int) -> str:
        """So many days; what took it out of service, '' where nothing did."""
        reboots = set(self.pick.sample(range(1, days), min(2, days - 1)))
        for number in range(days):
            if number in reboots:
                self.end()
                self.boot()
            self.say(day(self.pick, lines, boots=number in (0, *reboots)))
            if self.pick.random() < 1 / 15:
                self.say([message(self.pick) for message in SPARED])
            self.sysfs["edac"]["mc0"]["ce_count"] = str(
                int(self.sysfs["edac"]["mc0"]["ce_count"]) + self.pick.randint(0, 2)
            )
            for counters in self.pick.sample(sorted(self.efa), 4):
                name = self.pick.choice(sorted(self.efa[counters]))
                self.efa[counters][name] += self.pick.randint(0, 50)
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

    def end(self) -> None:
        self.scene.watcher.end()
        self.scene.close()


def lived(seed: int, days: int, lines: int) -> Lived:
    """One node's month and fault."""
    watcher.SETTLE_S = watcher.LONGEST_PAUSE_S = 0.0
    with tempfile.TemporaryDirectory(prefix="flightline-month-", ignore_cleanup_errors=True) as place:
        one = Month(Path(place), seed)
        wrong, kind = one.live(days, lines), sorted(FAULTS)[seed % len(FAULTS)]
        drained = not wrong and one.fall(kind)
        one.end()
        return Lived(one.lines, one.samples, wrong, kind, drained)


def table(found: list[Lived], days: int, seed: int) -> str:
    """What the page shows."""
    wrong, right = sum(bool(one.wrong) for one in found), sum(one.drained for one in found)
    sick = sum(not one.wrong for one in found)
    rows_of_page = [
        ("nodes, days of each, seed", f"{len(found)}, {days}, {seed}"),
        ("kernel lines; samples of /sys, EFA and nvidia-smi", f"{sum(o.lines for o in found):,}; {sum(o.samples for o in found):,}"),
        ("healthy nodes taken out", f"{wrong} (with 95 % certainty below {3 / max(1, len(found) * days):.2%} of days)" if not wrong else f"{wrong}"),
        ("faults after it, of kinds; drained", f"{sick}, {len({one.kind for one in found})}; {right}"),
        ("precision of drains", f"{right / max(1, right + wrong):.0%} ({right} of {right + wrong})"),
        ("recall of drains", f"{right / max(1, sick):.0%} ({right} of {sick})"),
    ]  # fmt: skip
    return "| simulated lines and counters, the watcher's own code | |\n|---|---|\n" + "".join(
        f"| {name} | {value} |\n" for name, value in rows_of_page
    )


def main() -> int:
    """Run and print; exit status 1 when a healthy node was taken out, or a sick one was not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--write", action="store_true", help="put the table into docs/healing.md")
    given, began = parser.parse_args(), time.monotonic()
    with ProcessPoolExecutor() as pool:
        seeds = range(given.seed * 1000, given.seed * 1000 + given.nodes)
        found = list(pool.map(partial(lived, days=given.days, lines=given.lines), seeds))
    made = table(found, given.days, given.seed)
    sys.stdout.write(f"{made}took {time.monotonic() - began:.0f} s\n")
    for seed, one in zip(seeds, found, strict=True):
        if one.wrong or not one.drained:
            sys.stderr.write(f"seed {seed}: {one.wrong or f'{one.kind}: not drained'}\n")
    if given.write:
        head, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(f"{head}{BEGIN}\n{made}{END}{rest.partition(END)[2]}")
    return 0 if all(one.drained for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
