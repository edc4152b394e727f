"""Which rank is slower than the others at its own work, and what everybody waits for. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

WINDOW = 20
"""Steps of each rank that are looked at: the newest."""
FEWEST = 4
"""With fewer ranks nobody can say who is the odd one."""
DEVIATIONS = 6.0
"""Scaled median absolute deviations above the median; own choice: 3.5 is usual for one value (Iglewicz
and Hoaglin, 1993), and here thousands of ranks are looked at each time."""
SCALE = 1.4826
"""Median absolute deviation to standard deviation, for normal values."""
LEAST_SHARE = 0.10
"""Of the median: ranks that all agree to a millisecond have no spread, and less than this is not worth a node."""
DATA_SHARE = 0.20
"""Of a step spent on waiting for its data; own choice."""
CPU_SHARE = 0.90
"""Of a step in which the rank's Python thread is busy: the GPU waits for what it is given to do. Own choice."""
NETWORK_SHARE = 0.40
"""Of a step that is neither data nor own forwards and backwards: reduction, gathering, waiting. Own choice."""
LOW_GPU_PERCENT = 50.0
"""Of the median rank's GPU. Kernels of NCCL count as use (NVML), so a slow network does not show here."""
NODE_WINDOW, NODE_FEWEST = 100, 50
"""Steps of each rank by which a node is compared, and fewer of which say nothing."""
NODE_SHARE, NODE_DEVIATIONS = 0.02, 5.0
"""Of a step, beyond what GPUs of one kind differ by for good. Own choices, by a simulation (test_slow_node.py)."""
DATA, CPU, NETWORK, IDLE = "data", "cpu", "network", "idle"


@dataclass(frozen=True)
class SlowRank:
    """A slow rank. seconds, usual_s: its median of own work in a step, and that of the ranks."""

    rank: int
    seconds: float
    usual_s: float

    @property
    def why(self) -> str:
        """For people."""
        more = self.seconds / self.usual_s - 1
        return f"{1000 * self.seconds:.1f} ms of its own work in a step, the median of the ranks is " \
               f"{1000 * self.usual_s:.1f} ms ({more:+.0%})"  # fmt: skip


def stragglers(steps: Mapping[int, Sequence[Mapping[str, Any]]]) -> list[SlowRank]:
    """Slow ranks, the slowest first. steps: of each rank the events with local_s, seconds that needed no other rank."""
    own = {rank: median(values) for rank, events in steps.items() if (values := _values(events, "local_s"))}
    if len(own) < FEWEST:
        return []
    middle = median(own.values())
    spread = SCALE * median(abs(value - middle) for value in own.values())
    most = middle + max(DEVIATIONS * spread, LEAST_SHARE * middle)
    found = [SlowRank(rank, value, middle) for rank, value in own.items() if value > most]
    return sorted(found, key=lambda one: -one.seconds)


@dataclass(frozen=True)
class SlowNode:
    """A slow node. share: by which its ranks' own work in a step is longer than the other nodes'."""

    node: str
    share: float

    @property
    def why(self) -> str:
        """For people."""
        return (
            f"its ranks come {self.share:.1%} of a step later than those of the other nodes, median of the newest steps"
        )


def deviations(
    times: Mapping[int, Mapping[Any, float]], lengths: Mapping[Any, float] | None = None
) -> dict[int, list[float]]:
    """Of each rank by step, in order: its share beyond the median rank of that same step, which noise of all is not in.

    times: seconds by rank and step. lengths: of each step, where it is not the median rank's own time.
    """
    middles: dict[Any, float] = {}
    for step in {step for of in times.values() for step in of}:
        values = [of[step] for of in times.values() if step in of]
        if len(values) == len(times) and (lengths or {}).get(step, median(values)) > 0:
            middles[step] = median(values)
    newest = sorted(middles)[-NODE_WINDOW:]
    return {
        rank: [(of[step] - middles[step]) / (lengths or middles)[step] for step in newest] for rank, of in times.items()
    }


def slow_nodes(shares: Mapping[int, Sequence[float]], hosts: Mapping[int, str]) -> list[SlowNode]:
    """Nodes all of whose ranks are late together, the slowest first. shares: by rank, as deviations() gives them."""
    ranks: dict[str, list[float]] = {}
    for rank, values in shares.items():
        if rank not in hosts or len(values) < NODE_FEWEST:
            return []
        ranks.setdefault(hosts[rank], []).append(median(values))
    nodes = {node: median(values) for node, values in ranks.items()}
    if len(nodes) < FEWEST:
        return []
    middle = median(nodes.values())
    spread = SCALE * median(abs(value - middle) for value in nodes.values())
    found = [SlowNode(node, value - middle) for node, value in nodes.items()
             if value - middle > max(NODE_DEVIATIONS * spread, NODE_SHARE)]  # fmt: skip
    return sorted(found, key=lambda one: -one.share)


def bottleneck(steps: Mapping[int, Sequence[Mapping[str, Any]]]) -> tuple[str, str] | None:
    """What all ranks wait for, and why it is that; None where nothing stands out or nothing was measured.

    The CPU only where the GPU's use is known to be low: a step that is computed on the CPU keeps it busy as well.
    """
    data, cpu, own = (_share(steps, name) for name in ("data_s", "cpu_s", "own_s"))
    used = [median(values) for events in steps.values() if (values := _values(events, "gpu_percent"))]
    gpu = median(used) if used else None
    seen = "" if gpu is None else f"; the GPUs are used {gpu:.0f}%, of the ranks {min(used):.0f}% to {max(used):.0f}%"
    low = gpu is not None and gpu < LOW_GPU_PERCENT
    if data is not None and data >= DATA_SHARE:
        return DATA, f"{data:.0%} of a step is waiting for its data{seen}"
    if low and cpu is not None and cpu >= CPU_SHARE:
        return CPU, f"the CPU is busy for {cpu:.0%} of a step{seen}"
    if own is not None and len(steps) > 1 and (rest := 1 - own - (data or 0)) >= NETWORK_SHARE:
        return NETWORK, f"{rest:.0%} of a step is neither data nor forwards and backwards, but the other ranks{seen}"
    return (IDLE, f"no data, CPU or network is seen to be waited for{seen}") if low else None


def _share(steps: Mapping[int, Sequence[Mapping[str, Any]]], name: str) -> float | None:
    """Of the median rank's step."""
    shares = [
        median(part) / median(whole)
        for events in steps.values()
        if (part := _values(events, name)) and (whole := _values(events, "step_s")) and median(whole) > 0
    ]
    return median(shares) if shares else None


def _values(events: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [float(event[name]) for event in events[-WINDOW:] if isinstance(event.get(name), (int, float))]
