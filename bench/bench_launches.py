"""Launch protection, simulated: how often a launch is stopped by its share of bad nodes, and after how many boots.

Nothing was measured on AWS. A launch goes on until all its nodes serve: what is abandoned is replaced. Boots end in
random order, or those of the bad nodes first: they failed in less time than a go takes. Wanted: a healthy launch (up to
2 % bad) stopped at most once in 1,000; a bad image (90 % or more) stopped within its first 10 boots.
"""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from bench.common import asked
from flightline.cloud.functions.alert_router.share import Run

FLOOR = 5
SIZES = (4, 16, 64, 256, 512, 1000, 2000)
SHARES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.9, 1.0)


@dataclass(frozen=True)
class Result:
    """What a launch came to. boots: that had ended by then."""

    stopped: bool
    boots: int


def launch(nodes: int, bad: float, order: random.Random, floor: int = FLOOR) -> Result:
    """One launch, boots ending in random order. bad: the share of bad nodes."""
    found, served, boots = Run(), 0, 0
    while True:
        # Goes until the next bad node: a geometric distribution.
        gap = int(math.log(1 - order.random()) / math.log(1 - bad)) if bad < 1 else 0
        if served + gap >= nodes:
            return Result(False, boots + nodes - served)
        served, boots = served + gap, boots + gap + 1
        found = found.after((str(boots),), gap)
        if found.stops(floor):
            return Result(True, boots)


def at_once(nodes: int, bad: float, order: random.Random, floor: int = FLOOR) -> Result:
    """The worst order: every node begins together, and every bad one has failed before the first go."""
    found = Run()
    for boots in range(1, 1 + sum(order.random() < bad for _ in range(nodes))):
        found = found.after((str(boots),))
        if found.stops(floor):
            return Result(True, boots)
    return Result(False, nodes)


def table(rounds: int, seed: int) -> Iterator[str]:
    """Stopped launches in percent by size and share, and the latest stop in boots."""
    yield "| bad nodes | " + " | ".join(f"{size:,}" for size in SIZES) + " | stopped after, at the latest |"
    yield "|---|" + "--:|" * (len(SIZES) + 1)
    for bad in SHARES:
        cells, latest = [], 0
        for size in SIZES:
            order = random.Random(f"{seed} {size} {bad}")
            stopped = [one.boots for one in (launch(size, bad, order) for _ in range(rounds)) if one.stopped]
            latest = max([latest, *stopped])
            cells.append(f"{100 * len(stopped) / rounds:.3g} %")
        yield f"| {100 * bad:g} % | " + " | ".join(cells) + f" | {f'{latest:,} boots' if latest else 'never'} |"
    for bad in (0.01, 0.02):
        found = [sum(at_once(size, bad, random.Random(n)).stopped for n in range(rounds // 10)) for size in SIZES]
        cells = [f"{1000 * count / rounds:.3g} %" for count in found]
        yield f"| {100 * bad:g} %, all at once and the bad ones first | " + " | ".join(cells) + " | 5 boots |"


def main() -> int:
    """Print the table."""
    given = asked(__doc__, rounds=10_000, seed=33)
    for line in table(given.rounds, given.seed):
        print(line)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
