"""The most microseconds that a small collective may take, for any instance type and number of nodes.

The lowest that holds of each published figure (hardware.py) of this or a weaker type: as it is for as many nodes as it
was measured on or fewer, and so many times it as there are more nodes, for NCCL may choose a ring. So no ceiling falls
with more nodes or rises with a stronger type. Good tables show single rows at five times their neighbours (the first
size while it warms up, 68 us among 13 on a DGX H100), so a run is judged by its median over small sizes.

Where nothing is published (all but all_reduce; nodes without NVSwitch) there is no ceiling: the figure is measured, and
compared with the fleet's.
"""

from __future__ import annotations

from typing import Iterator, NamedTuple, Optional

from . import nccl
from .expected import Expected
from .hardware import NCCL_LATENCY
from .nccl_floor import RankGroup, is_weaker

WARN_TIMES, FAIL_TIMES = 2.0, 5.0
"""Of the slowest published. Ours: reports of one set-up differ by a tenth; sockets take more than five times."""


class Ceiling(NamedTuple):
    """Microseconds: above fail_above is a fault, above warn_above (never more) worth a look. basis: in words."""

    fail_above: float
    warn_above: float
    basis: str


def ceiling(expected: Expected, group: RankGroup, collective: str) -> Optional[Ceiling]:
    """What a small message may take over whole nodes; None where nothing is published that says it."""
    return min(_figures(expected, group, collective), default=None)


def _figures(expected: Expected, group: RankGroup, collective: str) -> Iterator[Ceiling]:
    for line in NCCL_LATENCY.splitlines():
        types, nodes, of, most_us, basis = line.split("|")
        # One node's figure says nothing of several: they have a network.
        if of != collective or (int(nodes) == 1 < group.nodes) or group.gpus != expected.gpu_count:
            continue
        rows = [nccl.row_of(name) for name in types.split(",")]
        if any(row and (row.instance_type == expected.instance_type or is_weaker(row, expected)) for row in rows):
            most = float(most_us) * max(1.0, group.nodes / int(nodes))
            yield Ceiling(most * FAIL_TIMES, most * WARN_TIMES, f"{basis}, {nodes} node(s)")
