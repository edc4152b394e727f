"""Settings check: time from a stack's raw values to its settings, or to all its mistakes. Wanted: under 50 ms.

python -m bench.bench_settings
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

from infra.config.errors import ConfigError
from infra.config.model import KEYS
from infra.config.reader import read
from infra.planning.zones import Zone, ZoneOffering

WANTED_MS = 50.0
RUNS = 200
ZONES = tuple(Zone(f"us-east-1{letter}", f"use1-az{index}") for index, letter in enumerate("abcdef", 1))
LARGE = {
    "gpuInstanceType": "p5.48xlarge",
    "gpuNodeCount": 128,
    "orchestrator": "slurm",
    "fsxSizeGib": 38400,
    "fsxEfa": True,
    "alertEmails": [f"user{index}@example.com" for index in range(50)],
    "tags": [f"Key{index}=value" for index in range(30)],
}
BROKEN = {key.name: "wrong" for key in KEYS}
FIRST = (
    "import time; before = time.process_time(); import bench.bench_settings as b; b.check(b.LARGE); "
    "print(time.process_time() - before)"
)


def check(values: Mapping[str, object]) -> int:
    """Check values; returns the number of mistakes."""
    try:
        read(values, "us-east-1", lambda _: ZoneOffering(ZONES, None))
    except ConfigError as error:
        return len(error.mistakes)
    return 0


def milliseconds(work: Callable[[], object]) -> float:
    """Median CPU time: the machine's load does not change it."""
    spent = []
    for _ in range(RUNS):
        before = time.process_time()
        work()
        spent.append((time.process_time() - before) * 1000)
    return statistics.median(spent)


def main() -> int:
    """Print the figures; exit status 1 when the check is slower than wanted."""
    good, bad = milliseconds(lambda: check(LARGE)), milliseconds(lambda: check(BROKEN))
    answer = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
    for what, spent in ((f"{len(KEYS)} keys, all right", good), (f"{check(BROKEN)} mistakes", bad)):
        print(f"settings check, {what}: {spent:.2f} ms of {WANTED_MS:.0f} wanted, ratio {spent / WANTED_MS:.3f}")
    print(f"first check of a process, imports included: {float(answer.stdout) * 1000:.0f} ms CPU")
    return 0 if max(good, bad) < WANTED_MS else 1


if __name__ == "__main__":
    sys.exit(main())
