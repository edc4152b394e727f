"""NeuronLink: who is joined to whom, and the bandwidth below which a collective shows a broken node.

Neighbours: the tables of aws-neuron-driver (v2/neuron_dhal_v2.c, v3/neuron_dhal_v3.c) and the drawings of AWS Neuron's
architecture pages. AWS publishes no gate for nccom-test: the floors are a share of the published NeuronLink rate, low
enough for every example of the "NCCOM-TEST User Guide" (two ranks 40 to 53 GB/s, 16 ranks 104, two nodes 47), so they
tell a path that does not work from one that does, not a slow one from a fast one. A site sets its own.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, Optional, Tuple

from .expected import Expected

SIDE = 4
"""The tori are 4 x 4."""

LINK_SHARE_PERCENT = 5.0
EFA_SHARE_PERCENT = 10.0
SINGLE_DEVICE_GB_S = 20.0
"""Half of what the guide shows for two ranks of one device."""
MIN_BYTES = 32 << 20
"""nccom-test's own default size; smaller ones measure latency."""
BITS = 8


def neighbours(topology: str, count: int) -> Dict[int, FrozenSet[int]]:
    """Device -> the devices that NeuronLink joins it to, for a torus, a ring or a line of `count` devices."""
    if topology == "torus":
        return {index: _torus(index) for index in range(SIDE * SIDE)}
    found = {index: {index - 1, index + 1} for index in range(count)}
    if topology == "ring":
        return {index: frozenset(other % count for other in others) for index, others in found.items()}
    return {index: frozenset(other for other in others if 0 <= other < count) for index, others in found.items()}


def _torus(index: int) -> FrozenSet[int]:
    row, column = divmod(index, SIDE)
    beside = {row * SIDE + (column + step) % SIDE for step in (1, -1)}
    return frozenset(beside | {(row + step) % SIDE * SIDE + column for step in (1, -1)})


def busbw_floor(expected: Expected, nodes: int, ranks: int = 0) -> Optional[Tuple[float, str]]:
    """(GB/s, what it rests on) for all_reduce, all_gather and reduce_scatter; None when the type is not known.

    ranks: 0 when not known. No more than one device has cores cross no link, whose rate then says nothing.
    """
    link, efa = expected.neuron_link_gb_s, expected.efa_count
    if not expected.has_neuron:
        return None
    if nodes <= 1 and 0 < ranks <= (expected.neuron_cores or 0):
        link = None
    inside = (
        (link * LINK_SHARE_PERCENT / 100, f"{LINK_SHARE_PERCENT:g} % of NeuronLink's {link:g} GB/s per device")
        if link
        else (SINGLE_DEVICE_GB_S, "half of what AWS's guide shows for the cores of one device")
    )
    rate = (expected.efa_gbps or 0) / BITS
    if nodes <= 1:
        return inside
    if not efa or not rate:
        return None
    between = efa * rate * EFA_SHARE_PERCENT / 100
    return min(inside, (between, f"{EFA_SHARE_PERCENT:g} % of the rate of {efa} EFA devices"))
