"""What NCCL bandwidth a healthy node or group of nodes reaches, by instance type.

A gate holds for one instance type, number of nodes, collective and a least message size.
Figures are busbw of nccl-tests in GB/s (10^9), out-of-place; figures and sources stand beside the types' rows
(hardware.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Iterable, List, Optional, Tuple

from ..model import SettingsError
from . import links
from .expected import Expected, resolve
from .hardware import NCCL_GATES

_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@dataclass(frozen=True)
class Gate:
    """Least busbw in GB/s of one collective over `nodes` full nodes, for messages of min_bytes and more."""

    instance_type: str
    nodes: int
    collective: str
    min_bytes: int
    warn_below: float
    fail_below: float
    basis: str


def _bytes(text: str) -> int:
    return int(text[:-3]) * _UNITS[text[-3:]]


@lru_cache(maxsize=None)
def gates() -> Tuple[Gate, ...]:
    """Every gate. Raises SettingsError when the table asks for what no link can carry."""
    found: List[Gate] = []
    for line in NCCL_GATES.splitlines():
        types, nodes, collective, size, warn, fail, basis = line.split("|")
        for name in types.split(","):
            found.append(Gate(name, int(nodes), collective, _bytes(size), float(warn), float(fail), basis))
    check_gates(found)
    return tuple(found)


@lru_cache(maxsize=None)
def row_of(instance_type: str) -> Optional[Expected]:
    """The type's row; None for a type that is not in the table."""
    try:
        return resolve(instance_type)
    except SettingsError:
        return None


def ceiling(instance_type: str, nodes: int, collective: str) -> Optional[float]:
    """The most busbw in GB/s that the links can carry; None for a type without link rates.

    busbw is data size over time, times a factor of the number of ranks n (nccl-tests
    doc/PERFORMANCE.md), so it may pass the wire rate where fewer bytes cross the wire than in a ring:
    with NVLS the switch does the sum and a GPU sends its data once; over N nodes a node need send
    2(N-1)/N of the data for all_reduce and (N-1)/N for all_gather and reduce_scatter.
    """
    row = row_of(instance_type)
    each, nic = (links.inside_gb_s(row), links.network_gb_s(row)) if row else (None, None)
    if row is None or each is None or nic is None or not row.gpu_count:
        return None
    n = row.gpu_count * nodes
    factor = factor_of(collective, n)
    inside = each * (factor if row.nvls and collective == "all_reduce" else 1.0)
    if nodes == 1:
        return inside
    if collective == "alltoall":
        return min(inside, nic * (n - 1) / (row.gpu_count * (n - row.gpu_count)))
    crossing = {"all_reduce": 2 * (nodes - 1) / nodes, "broadcast": 1.0, "reduce": 1.0, "sendrecv": 1.0 / row.gpu_count}
    outside = nic / crossing.get(collective, (nodes - 1) / nodes) * factor
    return min(inside, outside)


def factor_of(collective: str, ranks: int) -> float:
    """The ratio of busbw to algbw for this number of ranks (nccl-tests doc/PERFORMANCE.md)."""
    factors = {"all_reduce": 2 * (ranks - 1) / ranks, "broadcast": 1.0, "reduce": 1.0, "sendrecv": 1.0}
    return factors.get(collective, (ranks - 1) / ranks)


def check_gates(table: Iterable[Gate], scale: float = 1.0) -> None:
    """Refuse thresholds that no healthy node could reach, or that contradict each other.

    Raises SettingsError naming every bad gate. scale: the site's factor on all of them.
    """
    wrong: List[str] = []
    for gate in table:
        most = ceiling(gate.instance_type, gate.nodes, gate.collective)
        name = f"{gate.instance_type}, {gate.nodes} node(s), {gate.collective}"
        if most is None:
            wrong.append(f"{name}: no link rates known for this type")
        elif gate.warn_below * scale > most:
            wrong.append(f"{name}: {gate.warn_below * scale:g} GB/s is above the {most:.0f} GB/s its links can carry")
        if not 0 < gate.fail_below <= gate.warn_below:
            wrong.append(f"{name}: fail below {gate.fail_below:g} must be in 0 to warn below {gate.warn_below:g}")
    if wrong:
        raise SettingsError("NCCL gates: saw " + "; ".join(wrong) + "; wanted gates that the links can reach")


def for_group(instance_type: str, nodes: int, collective: str) -> Tuple[Gate, ...]:
    """The gates of a group of nodes, largest message first."""
    found = (g for g in gates() if (g.instance_type, g.nodes, g.collective) == (instance_type, nodes, collective))
    return tuple(sorted(found, key=lambda gate: -gate.min_bytes))
