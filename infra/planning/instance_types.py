"""What planning needs to know of an instance type, from its row in the node library's table."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from flightline_node.know import expected

ON_DEMAND = "on-demand"
SPOT = "spot"
RESERVATION = "reservation"
CAPACITY_BLOCK = "capacity-block"
CAPACITIES = (ON_DEMAND, SPOT, RESERVATION, CAPACITY_BLOCK)
GRAVITON = r"a1\.|[a-z]+\d+[a-z]*g[a-z]*\."
"""A g behind the generation's number: m7g, c7gn, x2gd. EC2 user guide, naming conventions of instance types."""


@dataclass(frozen=True)
class NetworkFacts:
    """Network cards and purchase options of one type.

    efa_cards: indexes of the network cards that hold an EFA interface; capacities: kinds that the type is sold by.
    """

    instance_type: str
    accelerator: str
    architecture: str
    efa_cards: tuple[int, ...]
    capacities: frozenset[str]
    gpu_count: int
    fsx_efa: bool

    @property
    def efa_count(self) -> int:
        """EFA interfaces of the type."""
        return len(self.efa_cards)


@lru_cache(maxsize=1)
def known() -> tuple[str, ...]:
    """Every type that can be asked for."""
    return tuple(expected.known_types())


@lru_cache(maxsize=128)
def facts(instance_type: str) -> NetworkFacts:
    """Facts of a type. Raises ValueError naming the nearest known types."""
    if instance_type not in known():
        if expected.unsourced(instance_type):
            raise ValueError(f"another type: {expected.unsourced(instance_type)}")
        near = ", ".join(get_close_matches(instance_type, known(), n=3, cutoff=0.4)) or "p5.48xlarge, g6.xlarge"
        raise ValueError(f"a GPU, Trainium or Inferentia type of the table, for example {near}")
    entry = expected.resolve(instance_type)
    return NetworkFacts(
        instance_type=instance_type,
        accelerator=entry.accelerator or "",
        architecture=entry.arch or "x86_64",
        efa_cards=entry.efa_cards,
        capacities=frozenset(entry.sold),
        gpu_count=entry.gpu_count or 0,
        fsx_efa=bool(entry.fsx_efa),
    )


def architecture_of(instance_type: str) -> str:
    """Of a type without a GPU, which is not in the table, by its name."""
    return "arm64" if re.match(GRAVITON, instance_type) else "x86_64"
