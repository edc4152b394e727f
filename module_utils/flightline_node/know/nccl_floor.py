"""The least NCCL bandwidth for any instance type, number of ranks and message size.

A published gate (expected/nccl.py) where there is one; else the nearest gate of a type with the same GPU links, scaled
by what the links can carry and lowered, because it was measured elsewhere; else a stated share of line rate. Small
messages are held to the time that the floor's bandwidth and a generous start-up take: no size is without a floor.

Shares are set below the least that good nodes are known to give: 77 to 81 % of NVLink in a ring (8x A100, H200, B200),
59 % of the NICs on an old p4d stack (NVIDIA/nccl 527), 53 % of the NICs in alltoall on 256 ranks (p6-b300); without
NVSwitch data goes through host memory, where one figure of PCIe says little: only a tenth of it is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from . import links, nccl
from .expected import Expected

BORROWED_FAIL, BORROWED_WARN = 0.75, 0.9
"""What is left of a gate that was measured on another type, number of nodes or message size."""
NVLINK_SHARE, MESH_SHARE, PCIE_SHARE = 0.5, 0.3, 0.1
RDMA_SHARE, HOST_SHARE = 0.4, 0.16
"""Of the NICs: with GPUDirect RDMA, and through host memory, EFA or sockets."""
PARTIAL = 0.5
"""Further share for a part of a node's GPUs: which NICs and links it may use depends on which GPUs they are."""
STARTUP_S, STARTUP_PER_RANK_S = 1e-3, 50e-6
"""Far above what is seen (tens of microseconds, some more per node): a floor for small messages, not a measure."""
MEASURABLE_BYTES = 16 << 20
"""Under this size the start-up decides: reaching the floor shows nothing about the links."""
_KINDS = {"all_reduce": 1.0, "all_gather": 1.0, "reduce_scatter": 1.0, "broadcast": 0.75, "reduce": 0.75}
_OTHER_KIND = 0.4
"""alltoall, sendrecv, gather, scatter, hypercube: pairs of ranks, not a ring, and a root that receives from all."""
_ONE_GPU_OF_A_NODE = ("sendrecv", "gather", "scatter", "hypercube")


@dataclass(frozen=True)
class Floor:
    """GB/s of busbw: below fail_below is a fault, below warn_below (never less) worth a look. basis: in words."""

    fail_below: float
    warn_below: float
    basis: str


@dataclass(frozen=True)
class RankGroup:
    """Ranks that run one collective: `gpus` of each of `nodes` nodes."""

    nodes: int
    gpus: int

    @property
    def ranks(self) -> int:
        """How many ranks there are, one per GPU."""
        return self.nodes * self.gpus


def group_of(ranks: int, hosts: int, gpus_per_node: int) -> RankGroup:
    """Full nodes where the ranks fill them on no more hosts than that; else the same part of each host."""
    if ranks % gpus_per_node == 0 and hosts <= ranks // gpus_per_node:
        return RankGroup(ranks // gpus_per_node, gpus_per_node)
    hosts = max(hosts, -(-ranks // gpus_per_node))
    return RankGroup(hosts, max(1, ranks // hosts))


def floor(
    expected: Expected, group: RankGroup, collective: str, size_bytes: int, scale: float = 1.0
) -> Optional[Floor]:
    """The floor for messages of size_bytes; None where the type's row does not say what its links carry."""
    full = group.gpus == expected.gpu_count
    own = nccl.for_group(expected.instance_type, group.nodes, collective) if full else ()
    gate = next((gate for gate in own if size_bytes >= gate.min_bytes), None)
    if gate:
        return Floor(gate.fail_below * scale, gate.warn_below * scale, gate.basis)
    found = (_borrowed(expected, group, collective, size_bytes) if full else None) or _of_the_links(
        expected, group, collective
    )
    return _timed(found, group, collective, size_bytes, scale) if found else None


def _timed(found: Floor, group: RankGroup, collective: str, size_bytes: int, scale: float) -> Floor:
    """The floor for this size: the time that its bandwidth takes, and the start-up on top."""
    sent_gb = max(size_bytes, 1) * nccl.factor_of(collective, max(group.ranks, 2)) / 1e9
    startup_s = STARTUP_S + STARTUP_PER_RANK_S * group.ranks
    fail, warn = (sent_gb / (sent_gb / (value * scale) + startup_s) for value in (found.fail_below, found.warn_below))
    return Floor(fail, warn, found.basis)


def _borrowed(expected: Expected, group: RankGroup, collective: str, size_bytes: int) -> Optional[Floor]:
    """The nearest gate of a type whose GPUs have the same links among them, as one node or as several."""
    mine = nccl.ceiling(expected.instance_type, group.nodes, collective)
    if not mine:
        return None

    def distance(gate: nccl.Gate) -> Tuple[bool, bool, float, int]:
        return (
            gate.instance_type != expected.instance_type,
            gate.min_bytes > size_bytes,
            max(gate.nodes, group.nodes) / min(gate.nodes, group.nodes),
            -gate.min_bytes if gate.min_bytes <= size_bytes else gate.min_bytes,
        )

    alike = [
        gate
        for gate in nccl.gates()
        if gate.collective == collective and (gate.nodes > 1) == (group.nodes > 1) and _alike(expected, gate)
    ]
    if not alike:
        return None
    gate = min(alike, key=distance)
    ratio = min(1.0, mine / (nccl.ceiling(gate.instance_type, gate.nodes, collective) or mine))
    basis = f"from the figure of {gate.nodes} node(s) of {gate.instance_type}: {gate.basis}"
    return Floor(gate.fail_below * ratio * BORROWED_FAIL, gate.warn_below * ratio * BORROWED_WARN, basis)


def _alike(expected: Expected, gate: nccl.Gate) -> bool:
    other = nccl.row_of(gate.instance_type)
    return other is not None and (other.gpu_count, other.nvlink_gb_s, other.nvls) == (
        expected.gpu_count, expected.nvlink_gb_s, expected.nvls,
    )  # fmt: skip


def _of_the_links(expected: Expected, group: RankGroup, collective: str) -> Optional[Floor]:
    inside = links.inside_gb_s(expected)
    share, what = (NVLINK_SHARE, "NVLink") if expected.nvswitch else (MESH_SHARE, "NVLink")
    if not expected.nvlink_links_per_gpu or (not expected.nvswitch and group.gpus != expected.gpu_count):
        # Of a mesh any two GPUs may have no link between them.
        inside, share, what = links.pcie_gb_s(expected), PCIE_SHARE, "PCIe"
    if inside is None:
        return None
    rate = inside
    if group.nodes > 1:
        outside = _outside_gb_s(expected, group, collective)
        if outside is None:
            return None
        rate = min(inside, outside)
        share, what = (RDMA_SHARE, "NICs") if expected.nvswitch and expected.rdma_read else (HOST_SHARE, "NICs")
        what = what if outside < inside else "PCIe, on the way to the NICs"
    share *= _KINDS.get(collective, _OTHER_KIND) * (1 if group.gpus == expected.gpu_count else PARTIAL)
    least = rate * share
    return Floor(least, least, f"{share:.0%} of the {rate:.3g} GB/s of its {what}")


def _outside_gb_s(expected: Expected, group: RankGroup, collective: str) -> Optional[float]:
    """What this group can send over the network, for this collective, in busbw."""
    nic, gpus = links.network_gb_s(expected), expected.gpu_count
    if nic is None or not gpus:
        return None
    used = nic * min(1.0, group.gpus / gpus)
    if collective == "alltoall":
        return used * (group.ranks - 1) / (group.gpus * (group.ranks - group.gpus))
    return nic / gpus if collective in _ONE_GPU_OF_A_NODE else used
