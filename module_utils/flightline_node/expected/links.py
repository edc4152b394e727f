"""What the links of a GPU can carry in one direction, by what the instance type has; 0 where that is not known.

PCI Express: 8, 16 and 32 GT/s a lane at 128b/130b (base specification). Generation by GPU architecture and NVLink
rates: NVIDIA data sheets. Links and lanes: the instance types' table and pcie_width.
"""

from __future__ import annotations

from typing import Dict, Optional

from . import Expected

PCIE_LANE_GB_S: Dict[int, float] = {3: 0.985, 4: 1.969, 5: 3.938}
PCIE_GENERATION: Dict[str, int] = {"volta": 3, "turing": 3, "ampere": 4, "ada": 4, "hopper": 5, "blackwell": 5}


def pcie_gb_s(expected: Expected, lanes: Optional[float]) -> float:
    """Between host and GPU over PCIe; a superchip's GPU hangs on its CPU by another link."""
    generation = expected.pcie_gen or PCIE_GENERATION.get(expected.gpu_generation or "", 0)
    if not lanes or "superchip" in (expected.gpu_model or ""):
        return 0.0
    return PCIE_LANE_GB_S.get(generation, 0.0) * lanes


def nvlink_gb_s(expected: Expected) -> float:
    """Between any two GPUs through NVSwitch; without one it differs by pair."""
    links, each = expected.nvlink_links_per_gpu, expected.nvlink_gb_s_per_link
    return links * each if expected.nvswitch and links and each else 0.0
