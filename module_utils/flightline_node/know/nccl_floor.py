"""The least NCCL bandwidth for any instance type, number of ranks and message size.

The highest that holds of: each published gate (know/nccl.py) of this or a weaker type, as it stands for as many nodes
and as small a message, lowered for fewer nodes or a larger one; and a stated share of line rate. So no floor rises with
more nodes, a smaller message or a weaker type. Small messages are held to the time that the floor's bandwidth and a
generous start-up take: no size is without a floor.

Shares are set below the least that good nodes are known to give: 77 to 81 % of NVLink in a ring (8x A100, H200, B200),
59 % of the NICs on an old p4d stack (NVIDIA/nccl 527), 53 % of the NICs in alltoall on 256 ranks (p6-b300); without
NVSwitch data goes through host memory, where one figure of PCIe says little: a node is asked for the share that several
nodes are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Iterator, Optional

from . import links, nccl
from .expected import Expected

BORROWED_FAIL, BORROWED_WARN = 0.75, 0.9
"""What is left of a gate that was measured on another type, number of nodes or message size."""
CONVERGED_NODES = 4
"""Two and three nodes flatter the network, since trees send fewer bytes over it; from four on a ring's busbw is what
the NICs carry, however many nodes follow (the reports on p5, p5en and p6-b200 beside their gates)."""
NVLINK_SHARE, MESH_SHARE, PCIE_SHARE = 0.5, 0.3, 0.16
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
    """The floor for messages of size_bytes: the highest that any known figure gives.

    It falls with more nodes, a smaller message and a weaker type, never rises. None where the type's row does not say
    what its links carry.
    """
    full = group.gpus == expected.gpu_count
    found = list(_of_figures(expected, group, collective, size_bytes)) if full else []
    linked = _of_the_links(expected, group, collective)
    found += [_timed(linked, group, collective, size_bytes)] if linked else []
    if not found:
        return None
    highest = max(found, key=lambda one: (one.fail_below, one.warn_below))
    return Floor(highest.fail_below * scale, max(one.warn_below for one in found) * scale, highest.basis)


def _timed(found: Floor, group: RankGroup, collective: str, size_bytes: int) -> Floor:
    """The floor for this size: the time that its bandwidth takes, and the start-up on top.

    The bytes are counted as for one node: a factor that grows with the ranks would let more nodes be asked for more.
    """
    sent_gb = max(size_bytes, 1) * nccl.factor_of(collective, max(group.gpus, 2)) / 1e9
    startup_s = STARTUP_S + STARTUP_PER_RANK_S * group.ranks
    fail, warn = (sent_gb / (sent_gb / value + startup_s) for value in (found.fail_below, found.warn_below))
    return Floor(fail, warn, found.basis)


def _of_figures(expected: Expected, group: RankGroup, collective: str, size_bytes: int) -> Iterator[Floor]:
    """What each published figure of this or a weaker type says: as it is of as many nodes and as small a message.

    A figure of fewer nodes or a larger message is lowered. One node's says nothing of several: they have a network.
    """
    for gate in nccl.gates():
        row = nccl.row_of(gate.instance_type)
        if gate.collective != collective or (gate.nodes == 1 < group.nodes) or row is None:
            continue
        if gate.instance_type != expected.instance_type and not is_weaker(row, expected):
            continue
        at = Floor(gate.fail_below, gate.warn_below, gate.basis)
        if gate.instance_type != expected.instance_type or gate.nodes != group.nodes:
            at = replace(at, basis=f"from the figure of {gate.nodes} node(s) of {gate.instance_type}: {gate.basis}")
        if gate.nodes >= group.nodes and gate.min_bytes <= size_bytes:
            yield at
            continue
        here, there = (nccl.ceiling(gate.instance_type, nodes, collective) for nodes in (group.nodes, gate.nodes))
        ratio = min(1.0, here / there) if here and there and gate.nodes < CONVERGED_NODES else 1.0
        at = replace(
            at, fail_below=at.fail_below * ratio * BORROWED_FAIL, warn_below=at.warn_below * ratio * BORROWED_WARN
        )
        yield at if gate.min_bytes <= size_bytes else _timed(at, group, collective, size_bytes)


def is_weaker(one: Expected, other: Expected) -> bool:
    """Has it as many GPUs, and no link that carries more? Types with the same links are weaker than each other."""
    if one.gpu_count != other.gpu_count:
        return False
    rates = (links.inside_gb_s, links.network_gb_s, links.pcie_gb_s)
    less = all((rate(one) or 0.0) <= (rate(other) or 0.0) for rate in rates)
    flags = ("nvswitch", "nvls", "rdma_read")
    return less and all(bool(getattr(one, flag)) <= bool(getattr(other, flag)) for flag in flags)


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
