"""Planning the remediation of 10,000 nodes, 1,000 of them sick, takes at most 2 s: python -m bench.bench_remediate.

What is timed is the pure part: from what was seen and what is kept to the plan. The fleet is made here.
"""

import random
import sys
import time

from flightline.healing.journal.incident import Moment, NodeTrouble, opened
from flightline.healing.journal.machine import EventKind
from flightline.healing.journal.stamps import later
from flightline.healing.plan.jobs import RunningJob
from flightline.healing.plan.observe import Sighting, absorb
from flightline.healing.plan.planner import FleetState, SchedulerView, plan
from flightline.healing.site import SitePolicy

NODES, GROUP_SIZE, SICK, PAST = 10_000, 500, 1_000, 2_000
LIMIT_S = 2.0
NOW = "2026-11-22T12:00:00+00:00"
REMEDIES = ("RESTART_APP", "RESET_GPU", "REBOOT", "REPLACE", "FIX_CONFIG", "CONTACT_SUPPORT")


def trouble(rng: random.Random, number: int) -> NodeTrouble:
    """One finding of one GPU; every tenth serial was in trouble before."""
    serial, check = str(1650000000000 + number % (SICK * 10)), f"check_{rng.randrange(40)}"
    return NodeTrouble(f"{check}@{serial}", check, rng.choice(REMEDIES), "made up", "GPU 3", serial)


def main() -> None:
    """Measure, and fail above the limit."""
    rng = random.Random(1)
    groups = {f"n{number}": f"group-{number // GROUP_SIZE}" for number in range(NODES)}
    places = {host: SchedulerView(jobs=(RunningJob(str(number)),)) for number, host in enumerate(groups)}
    # Over hours, so that no breaker falls and every node has to be decided.
    sightings = [
        Sighting(f"n{n}", f"i-{n}", groups[f"n{n}"], later(NOW, -n * 11), "run R", "quick", (trouble(rng, n),))
        for n in rng.sample(range(NODES), SICK)
    ]
    seen = Moment(NOW, EventKind.DETECTED, "run P")
    past = [
        opened(f"n{n}", f"i-{n}", groups[f"n{n}"], "quick", (trouble(rng, n),), seen)
        for n in rng.choices(range(NODES), k=PAST)
    ]
    started = time.perf_counter()
    current = absorb(sightings, [], NOW)
    made = plan(FleetState(NOW, groups, places, current, past), SitePolicy(breaker_percent=100))
    took = time.perf_counter() - started
    changing = sum(step.changes for step in made.steps)
    print(f"{NODES:,} nodes, {len(made.steps):,} sick, {changing:,} steps: {took:.2f} s (at most {LIMIT_S:g} s)")
    sys.exit(took > LIMIT_S or len(made.steps) != SICK)


if __name__ == "__main__":
    main()
