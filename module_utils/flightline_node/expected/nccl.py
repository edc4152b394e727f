"""What NCCL bandwidth a healthy node or group of nodes reaches, by instance type.

A gate holds for one instance type, number of nodes, collective and a least message size.
Figures are busbw of nccl-tests in GB/s (10^9), out-of-place. They are set from published
measurements: 1 GiB and more at about 85 to 90 percent (warn) and 70 to 85 percent (fail) of
them, 128 MiB at 75 and 50 percent, because reports at that size differ by a factor of two.

Measurements: awslabs/awsome-distributed-training micro-benchmarks/nccl-tests and
architectures/aws-pcs; stas00/ml-engineering network/README.md (H200 and B200 nodes, p5en, A100);
NVIDIA/dgxc-benchmarking nccl (DGX H100); aws-samples/aws-do-eks (p6-b200, 2 nodes); NVIDIA/nccl
number 527 (p4d). Link rates: NVIDIA data sheets and AWS instance type pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Iterable, List, Optional, Tuple

from ..model import SettingsError
from . import Expected, links, resolve

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


# instance types | nodes | collective | from size | warn below | fail below | basis
_GATES = """\
p4d.24xlarge,p4de.24xlarge|1|all_reduce|1GiB|220|185|230 to 235 measured on 8x A100; other clouds gate at 228 and 185
p4d.24xlarge,p4de.24xlarge|2|all_reduce|1GiB|70|55|77 to 78 measured on p4de
p5.48xlarge|1|all_reduce|8GiB|450|420|480 measured on 8x H100; other clouds gate at 460 and 440
p5e.48xlarge,p5en.48xlarge|1|all_reduce|8GiB|440|420|477 measured on 8x H200; another cloud gates at 431
p5.48xlarge,p5e.48xlarge,p5en.48xlarge|1|all_reduce|1GiB|400|325|464 to 466 measured on 8x H100 and 8x H200
p5.48xlarge,p5e.48xlarge,p5en.48xlarge|1|all_reduce|128MiB|300|200|400 to 402 measured on 8x H100 and 8x H200
p5.48xlarge,p5e.48xlarge,p5en.48xlarge|1|all_gather|8GiB|325|270|361 measured on 8x H200, one report
p5.48xlarge,p5e.48xlarge,p5en.48xlarge|1|reduce_scatter|8GiB|325|270|363 measured on 8x H200, one report
p5.48xlarge|2|all_reduce|8GiB|430|350|479 to 487 measured; AWS text expects 350 or more
p5.48xlarge|2|all_reduce|1GiB|370|305|437 measured
p5.48xlarge|2|all_reduce|128MiB|215|145|289 measured
p5en.48xlarge|4|all_reduce|4GiB|330|290|365 measured, one report
p6-b200.48xlarge|1|all_reduce|8GiB|780|650|839 to 846 measured; 682 means that NVLS did not engage
p6-b200.48xlarge|1|all_reduce|1GiB|615|505|723 measured
p6-b200.48xlarge|1|all_reduce|128MiB|425|285|568 measured
p6-b200.48xlarge|2|all_reduce|8GiB|470|400|524 measured, one report
p6-b200.48xlarge|4|all_reduce|4GiB|345|300|375 to 377 measured, two reports
p6-b200.48xlarge|4|all_reduce|1GiB|308|253|362 to 367 measured, two reports
p6-b200.48xlarge|4|all_reduce|128MiB|148|99|198 and 295 measured
p6-b300.48xlarge|2|all_reduce|16GiB|590|500|654 measured, one report
"""


def _bytes(text: str) -> int:
    return int(text[:-3]) * _UNITS[text[-3:]]


@lru_cache(maxsize=None)
def gates() -> Tuple[Gate, ...]:
    """Every gate. Raises SettingsError when the table asks for what no link can carry."""
    found: List[Gate] = []
    for line in _GATES.splitlines():
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
        raise SettingsError("NCCL gates: " + "; ".join(wrong))


def for_group(instance_type: str, nodes: int, collective: str) -> Tuple[Gate, ...]:
    """The gates of a group of nodes, largest message first."""
    found = (g for g in gates() if (g.instance_type, g.nodes, g.collective) == (instance_type, nodes, collective))
    return tuple(sorted(found, key=lambda gate: -gate.min_bytes))
