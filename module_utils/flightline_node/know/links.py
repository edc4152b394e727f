"""What the links of a GPU and of a node carry in one direction, in GB/s (10^9), from the instance type's row.

None where the row does not say: a caller has to answer that with UNKNOWN or SKIP, for a floor of 0 passes everything.
PCI Express: 8, 16 and 32 GT/s a lane at 128b/130b (base specification).
"""

from __future__ import annotations

from typing import Dict, Optional

from .expected import Expected

PCIE_LANE_GB_S: Dict[int, float] = {3: 0.985, 4: 1.969, 5: 3.938}
LEAST_LANES = 8
"""No type whose lanes are known gives a GPU fewer; for the types of which nothing is known."""
BURST_SHARE = 1 / 8
"""A type with 'up to' N Gbps is sure of this part only (baselines of the G types are 1/8 to 1/4: EC2 user guide)."""
BITS = 8


def pcie_gb_s(expected: Expected) -> Optional[float]:
    """Between host and GPU; by NVLink-C2C where the GPU hangs on its CPU. A share of a GPU has that of the link."""
    if expected.gpu_c2c_gb_s is not None:
        return expected.gpu_c2c_gb_s
    lane = PCIE_LANE_GB_S.get(expected.pcie_gen or expected.gpu_pcie_gen or 0)
    if lane is None:
        return None
    lanes = expected.pcie_width or expected.gpu_pcie_lanes or LEAST_LANES
    return lane * lanes * (expected.gpu_share or 1)


def peer_gb_s(expected: Expected) -> Optional[float]:
    """Between two GPUs of a node: all links through NVSwitch, one link of a mesh, else PCIe through the host's bridges.

    Two GPUs that meet at the host's root complex share it with others: a quarter of the link is what is sure.
    """
    links, each = expected.nvlink_links_per_gpu, expected.nvlink_gb_s_per_link
    if links is None or (links and each is None):
        return None
    if links and each:
        return each * links if expected.nvswitch else each
    pcie = pcie_gb_s(expected)
    return pcie / 4 if pcie else None


def inside_gb_s(expected: Expected) -> Optional[float]:
    """What a GPU sends to the others of its node: the data rate of its NVLinks, else PCIe."""
    return expected.nvlink_gb_s if expected.nvlink_links_per_gpu else pcie_gb_s(expected)


def network_gb_s(expected: Expected) -> Optional[float]:
    """What a node is sure to send: all its network cards, or the baseline where the type bursts."""
    if expected.network_gbps is None:
        return None
    return expected.network_gbps / BITS * (BURST_SHARE if expected.network_bursts else 1)
