"""A day of healthy kernel logs of 100 nodes, compressed in time: python -m tests.healing.day [--nodes 100] [--seed 16].

Every node's watcher reads its day from a pipe, as fast as it comes. A quarantine is a good node taken out of service.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.unit.watch.scene import Scene

from .kernel_lines import DAILY, FAULTS, day

AT_ONCE = 100


def main() -> int:
    """Run and print; exit status 1 when a healthy node was taken out, or the sick one at the end was not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--lines", type=int, default=600)
    parser.add_argument("--seed", type=int, default=16)
    given = parser.parse_args()
    pick, began, said, out = random.Random(given.seed), time.monotonic(), 0, []
    with tempfile.TemporaryDirectory(prefix="flightline-day-") as place:
        for number in range(given.nodes):
            said += live(Path(place) / f"n{number}", day(pick, given.lines), out)
        healthy, sick = len(out), [*day(pick, given.lines), *FAULTS["Xid 79"](pick), *[DAILY[0](pick)] * 5]
        live(Path(place) / "sick", sick, out)
    rows = [
        ("nodes, kernel lines", f"{given.nodes}, {said}"),
        ("quarantines", f"{healthy}"),
        ("the same day with one Xid 79: quarantines", f"{len(out) - healthy}"),
        ("took", f"{time.monotonic() - began:.1f} s"),
    ]
    sys.stdout.write("| measure | value |\n|---|---|\n" + "".join(f"| {name} | {value} |\n" for name, value in rows))
    for text in out[:healthy]:
        sys.stderr.write(f"{text}\n")
    return 0 if healthy == 0 and len(out) == 1 else 1


def live(place: Path, lines: list[str], out: list[str]) -> int:
    """One node's day; what took it out of service goes to out. Returns how many lines there were."""
    place.mkdir()
    scene = Scene(place).with_slurm().boot()
    for start in range(0, len(lines), AT_ONCE):
        scene.say(*lines[start : start + AT_ONCE])
        scene.watcher.step(0.05)
    scene.quiet(0.05)
    marker = scene.marker()
    out += [f"{place.name}: {marker['findings'][0]['message']}"] if marker else []
    scene.watcher.end()
    scene.close()
    return len(lines)


if __name__ == "__main__":
    sys.exit(main())
