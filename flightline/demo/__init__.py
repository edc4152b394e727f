"""The embedded fleet: simulated nodes with faults injected by name.

hardware.py   the machines: GPU models, PCI addresses
smi.py        what nvidia-smi prints on a healthy one
host.py       what the operating system's tools and files say
tree.py       all files of a healthy node, and the simulated tools
faults/       the faults: one entry each, a file per kind of hardware
fleet.py      the nodes' directories
inventory.py  the inventory of a simulated fleet
"""

from __future__ import annotations

from .faults import FAULTS, Fault
from .fleet import prepare
from .inventory import write_inventory

__all__ = ["FAULTS", "Fault", "prepare", "write_inventory"]
