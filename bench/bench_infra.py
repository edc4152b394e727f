"""The Pulumi program: its time under mocks by number of nodes, its resources, and boot to verdict.

1. CPU time of the whole program under mocks for 4, 64 and 1,000 nodes (wanted: flat, because nodes come from a group).
   The engine is the tests' stand-in; what AWS and Pulumi's engine add is not in it.
2. From instance launch to verdict: a simulation. Every step but the package's size is an assumption, printed beside its
   share; nothing of it was measured on AWS.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from statistics import median, quantiles

from tests.infra import program, stacks

NODES = (4, 64, 1000)
ROUNDS = 3
STACK = "p5-reservation"
ROOM = {"privateSubnetCidrs": ["10.0.96.0/20", "10.0.112.0/20"]}
SAMPLES = 20_000
S3_MB_S = 25.0


@dataclass(frozen=True)
class Step:
    """One step in seconds: least, likely and most (a triangular distribution), and where the numbers come from."""

    name: str
    least: float
    likely: float
    most: float
    why: str


def steps(package_mb: float) -> tuple[Step, ...]:
    """From RunInstances to InService of one 8-GPU node."""
    fetch = package_mb / S3_MB_S
    package = f"{package_mb:.1f} MB as built, {S3_MB_S:.0f} MB/s assumed"
    return (
        Step("EC2: pending to running", 15, 40, 180, "assumed; longer where capacity is scattered"),
        Step("firmware, kernel, systemd to network", 60, 150, 420, "assumed; 2 TiB of memory, 32 cards"),
        Step("cloud-init to the boot unit", 10, 25, 60, "assumed"),
        Step("driver, persistence daemon, fabric manager", 20, 60, 180, "assumed; 8 GPUs behind NVSwitch"),
        Step("node package from S3", 1 + fetch, 2 + fetch, 6 + fetch, package),
        Step("quick preflight", 3, 6, 10, "the level's budget of 10 s"),
        Step("record, lifecycle action", 1, 2, 8, "assumed; two API calls"),
        Step("Auto Scaling: into service", 2, 8, 30, "assumed"),
    )  # fmt: skip


def program_cpu_s(nodes: int) -> tuple[float, int]:
    """Best CPU seconds of a run, and the resources it registers."""
    changes = {**ROOM, "gpuNodeCount": nodes, "gpuNodeMaximum": nodes}
    best, resources = float("inf"), 0
    for _ in range(ROUNDS):
        started = time.process_time()
        run = program.run(STACK, changes=changes)
        best = min(best, time.process_time() - started)
        if run.error is not None:
            raise SystemExit(f"the program ends with an error: {run.error}")
        resources = len(run.custom)
    return best, resources


def simulate(plan: tuple[Step, ...], samples: int, seed: int = 1) -> list[list[float]]:
    """Seconds of every step, sample by sample."""
    chance = random.Random(seed)
    return [[chance.triangular(step.least, step.most, step.likely) for step in plan] for _ in range(samples)]


def report_boot(package_mb: float, limit_s: float) -> None:
    """Print each step's share, one node's time, and a fleet's."""
    plan = steps(package_mb)
    drawn = simulate(plan, SAMPLES)
    totals = [sum(sample) for sample in drawn]
    mean = sum(totals) / SAMPLES
    print(f"launch to verdict, simulated, {SAMPLES} nodes: median {median(totals):.0f} s, "
          f"95th percentile {quantiles(totals, n=20)[-1]:.0f} s")  # fmt: skip
    for number, step in enumerate(plan):
        share = sum(sample[number] for sample in drawn) / SAMPLES / mean
        print(f"  {share:6.1%}  {step.name} ({step.least:.0f} to {step.most:.0f} s; {step.why})")
    late = sum(total > limit_s for total in totals) / SAMPLES
    print(f"  over the limit of {limit_s / 60:.0f} min: {late:.2%} of nodes (abandoned and launched again)")
    chance = random.Random(2)
    for nodes in NODES:
        last = median(max(chance.choices(totals, k=nodes)) for _ in range(101))
        print(f"  the last of {nodes} nodes: {last:.0f} s")


def main() -> None:
    """Print the figures."""
    program.run("dev")  # imports
    figures = {nodes: program_cpu_s(nodes) for nodes in NODES}
    for nodes, (cpu_s, resources) in figures.items():
        print(f"{nodes:5d} nodes: {cpu_s:.2f} s of CPU under mocks, {resources} resources")
    ratio = figures[NODES[-1]][0] / figures[NODES[0]][0]
    print(f"{NODES[-1]} nodes over {NODES[0]}: {ratio:.2f} (wanted: flat)")
    package = next(one for one in program.planned(STACK).requests if one.name == "node-package").props["source"]
    with open(package.path, "rb") as file:
        size_mb = len(file.read()) / 1e6
    report_boot(size_mb, stacks.settings(STACK).boot.time_limit_minutes * 60)


if __name__ == "__main__":
    main()
