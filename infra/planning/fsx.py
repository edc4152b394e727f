"""Sizes of FSx for Lustre file systems, persistent 2 SSD.

Sizes: FSx CreateFileSystem API reference (1.2 TiB, 2.4 TiB, then steps of 2.4 TiB). EFA steps: FSx user guide,
"Working with EFA-enabled file systems" (2026); the first step is the smallest EFA-enabled file system.
"""

from collections.abc import Mapping
from types import MappingProxyType

SMALLEST_GIB = 1200
STEP_GIB = 2400
EFA_STEPS_GIB: Mapping[int, int] = MappingProxyType({125: 38400, 250: 19200, 500: 9600, 1000: 4800})
THROUGHPUTS_MB_S_PER_TIB: tuple[int, ...] = tuple(EFA_STEPS_GIB)
IMPORT_EVENTS: tuple[str, ...] = ("NEW", "CHANGED", "DELETED")
EXPORT_EVENTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"none": (), "new": ("NEW",), "new-and-changed": ("NEW", "CHANGED")}
)
"""Choices of what is exported. Never DELETED: one `rm -rf` on a node would empty the bucket."""


def valid_size(size_gib: int, throughput: int, efa: bool) -> bool:
    """Whether the size can be ordered."""
    if efa:
        return size_gib > 0 and size_gib % EFA_STEPS_GIB[throughput] == 0
    return size_gib == SMALLEST_GIB or (size_gib > 0 and size_gib % STEP_GIB == 0)


def nearest(size_gib: int, throughput: int, efa: bool) -> tuple[int, int]:
    """The valid sizes just below and just above one that is not; the smallest two for one below them all."""
    step = EFA_STEPS_GIB[throughput] if efa else STEP_GIB
    smallest = step if efa else SMALLEST_GIB
    if size_gib < smallest:
        return smallest, 2 * step if efa else STEP_GIB
    above = (size_gib // step + 1) * step
    return max(above - step, smallest), above


def efa_minimum_gib(throughput: int) -> int:
    """Smallest EFA-enabled file system."""
    return EFA_STEPS_GIB[throughput]
