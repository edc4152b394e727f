"""How much of a run's time trains: a simulation of faults, checkpoints, detection, spares and replacement. Pure.

Rates and causes: Llama 3's 419 unexpected interruptions in 54 days on 16,384 GPUs (arXiv 2407.21783, table 5), taken to
come independently of each other and in proportion to the number of GPUs.
"""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import dataclass
from typing import NamedTuple

HOUR_S = 3600.0


class InterruptionCause(NamedTuple):
    """One line of the table. replace: its node is exchanged; hang: a timeout sees it. Both are our reading.

    silent: seen later than it came.
    """

    name: str
    times: int
    replace: bool = True
    hang: bool = False
    silent: bool = False


CAUSES = (
    InterruptionCause("faulty GPU", 148),
    InterruptionCause("GPU HBM3 memory", 72),
    InterruptionCause("software bug", 54, replace=False),
    InterruptionCause("network switch or cable", 35, replace=False, hang=True),
    InterruptionCause("host maintenance", 32),
    InterruptionCause("GPU SRAM memory", 19),
    InterruptionCause("GPU system processor", 17),
    InterruptionCause("NIC", 7, hang=True),
    InterruptionCause("NCCL watchdog timeouts", 7, replace=False, hang=True),
    InterruptionCause("silent data corruption", 6, silent=True),
    InterruptionCause("GPU thermal interface and sensor", 6),
    InterruptionCause("SSD", 3),
    InterruptionCause("power supply", 3),
    InterruptionCause("server chassis", 2),
    InterruptionCause("IO expansion board", 2),
    InterruptionCause("dependency", 2, replace=False),
    InterruptionCause("CPU", 2),
    InterruptionCause("system memory", 2),
)
SEEN_GPUS, SEEN_DAYS = 16_384, 54
INTERRUPTIONS = sum(cause.times for cause in CAUSES)
GPUS_OF_A_NODE = 8
GPU_HOURS_BETWEEN = SEEN_GPUS * SEEN_DAYS * 24 / INTERRUPTIONS
"""Of one GPU, on average."""


@dataclass(frozen=True)
class ClusterRates:
    """What a cluster is like; seconds unless the name says otherwise.

    stall_s: that the training stands still for a checkpoint; write_s: until it is whole. crash_s, hang_s: from a fault
    to the end of the job. restart_s: from there, with all nodes at hand, to the first new step. swap_s: to bring a
    spare in; repair_h: until a replaced node is back as a spare. silent_s: until silent corruption is noticed, whose
    work is done again. fewer: without a spare the run goes on with fewer nodes, and does not wait for a repair.
    """

    gpus: int = SEEN_GPUS
    stall_s: float = 1.0
    write_s: float = 60.0
    crash_s: float = 10.0
    hang_s: float = 600.0
    restart_s: float = 60.0
    swap_s: float = 30.0
    spares: int = 16
    repair_h: float = 24.0
    silent_s: float = 0.0
    fewer: bool = True

    @property
    def between_s(self) -> float:
        """Seconds between two interruptions, on average."""
        return GPU_HOURS_BETWEEN * HOUR_S / self.gpus


class SimulatedRun(NamedTuple):
    """Of a simulated run. share: of its time that trained and stayed."""

    share: float
    interruptions: int
    lost_h: float
    down_h: float
    waited_h: float


def interval_s(site: ClusterRates) -> float:
    """What Flightline sets: the time between checkpoints that costs least, never shorter than a write takes.

    sqrt(2 x stall x time between faults) is Young's (1974) first-order optimum: what is written costs as much as what
    is lost.
    """
    return max(site.write_s, math.sqrt(2.0 * site.stall_s * site.between_s))


def spares(site: ClusterRates) -> int:
    """Nodes to hold ready: those in repair at once, mean and three standard deviations of a Poisson count."""
    replaced = sum(cause.times for cause in CAUSES if cause.replace) / INTERRUPTIONS
    mean = replaced * site.repair_h * HOUR_S / site.between_s
    return math.ceil(mean + 3.0 * math.sqrt(mean))


def simulate(site: ClusterRates, interval: float, days: float, seed: int) -> SimulatedRun:
    """One run of so many days with a checkpoint after each interval of training, in seconds."""
    chance, end = random.Random(seed), days * 24 * HOUR_S  # noqa: S311
    weights = [cause.times for cause in CAUSES]
    away: list[float] = []  # when each replaced node is back
    now = trained = lost = down = waited = 0.0
    interruptions = 0
    while now < end:
        ran = min(chance.expovariate(1.0 / site.between_s), end - now)
        kept = _kept(ran, interval, site) if now + ran < end else ran / (interval + site.stall_s)
        missing = max(0, len(away) - site.spares) if site.fewer else 0
        trained += kept * interval * max(0.0, 1.0 - missing * GPUS_OF_A_NODE / site.gpus)
        lost += ran - kept * (interval + site.stall_s)
        now += ran
        if now >= end:
            break
        while True:
            cause = chance.choices(CAUSES, weights)[0]
            interruptions += 1
            again_s = min(trained, site.silent_s) if cause.silent else 0.0
            trained, lost = trained - again_s, lost + again_s
            wait = _replaced(away, now, site) if cause.replace else 0.0
            took = (site.hang_s if cause.hang else site.crash_s) + site.restart_s + wait
            took += site.swap_s if cause.replace else 0.0
            again = chance.expovariate(1.0 / site.between_s)
            down, waited, now = down + min(took, again), waited + min(wait, again), now + min(took, again)
            if again >= took:
                break
    return SimulatedRun(trained / now, interruptions, lost / HOUR_S, down / HOUR_S, waited / HOUR_S)


def _kept(ran: float, interval: float, site: ClusterRates) -> int:
    """Checkpoints that were whole when the fault came."""
    return max(0, math.floor((ran - site.write_s) / (interval + site.stall_s)))


def _replaced(away: list[float], now: float, site: ClusterRates) -> float:
    """Take a spare; seconds until there is one."""
    while away and away[0] <= now:
        heapq.heappop(away)
    wait = (
        0.0
        if site.fewer or len(away) < site.spares
        else (heapq.heappop(away) - now if away else site.repair_h * HOUR_S)
    )
    heapq.heappush(away, now + wait + site.repair_h * HOUR_S)
    return wait
