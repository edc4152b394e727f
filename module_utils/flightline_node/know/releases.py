"""Which releases of the EFA software go together, newest first.

The package flightline_host has this very file by a link: the two reach a node apart, and neither imports the other.
"""

from __future__ import annotations

from typing import Tuple

VALIDATED: Tuple[Tuple[str, Tuple[str, ...]], ...] = (
    ("1.21", ("2.31.2",)),
    ("1.20.0", ("2.28.9", "2.29.7", "2.30.4")),
    ("1.19", ("2.27.3", "2.28.7", "2.29.7")),
    ("1.18.0", ("2.29.2",)),
    ("1.17.3", ("2.28.7",)),
    ("1.17.2", ("2.28.7",)),
    ("1.17.1", ("2.28.3",)),
    ("1.17.0", ("2.28.3",)),
    ("1.16.3", ("2.27.7",)),
    ("1.16.0", ("2.27.5",)),
    ("1.15.0", ("2.26.6",)),
    ("1.14", ("2.26.2",)),
)
"""aws-ofi-nccl release -> NCCL it was validated with (aws-ofi-nccl release notes); the first that fits counts."""
PLUGIN_NCCL, PLUGIN_LIBFABRIC = "2.17.1", "1.22.0"
"""The oldest that the plugin's releases of 2025 and later work with (aws-ofi-nccl release notes)."""
PEER_MEMORY: Tuple[Tuple[str, str], ...] = (("580", "2.17.3"),)
"""NVIDIA driver from this branch -> first EFA driver with peer memory for it (EFA driver release notes)."""
