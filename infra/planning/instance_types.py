"""What planning needs to know of an instance type: the node library's table, plus network cards and how it is sold.

Cards and capacity kinds: EC2 describe-instance-types (NetworkInfo.NetworkCards, SupportedUsageClasses), read 2026-11
from the dump that moto 5.2.5 carries; p6e-gb200 from the AWS EFA page, because the dump does not have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from flightline_node import expected

ON_DEMAND = "on-demand"
SPOT = "spot"
RESERVATION = "reservation"
CAPACITY_BLOCK = "capacity-block"
CAPACITIES = (ON_DEMAND, SPOT, RESERVATION, CAPACITY_BLOCK)

_BY_BLOCK = frozenset(
    {
        *("p4d.24xlarge", "p4de.24xlarge", "p5.4xlarge", "p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge"),
        *("p6-b200.48xlarge", "p6-b300.48xlarge", "p6e-gb200.36xlarge"),
        *("trn1.32xlarge", "trn2.3xlarge", "trn2.48xlarge", "trn2u.48xlarge"),
    }
)
_NOT_SPOT = frozenset({"trn2u.48xlarge", "p6e-gb200.36xlarge"})
_BLOCK_ONLY = frozenset({"p6e-gb200.36xlarge"})
_ENA_ONLY_CARD_0 = frozenset({"p6-b300.48xlarge", "p6e-gb200.36xlarge"})
_EFA_CARDS = {
    # Four at 400 Gbps: cards 1 and 3 share a GPU, so do 5 and 7, 9 and 11, 13 and 15 (AWS EFA page).
    "p6e-gb200.36xlarge": (1, 5, 9, 13),
}


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

    @property
    def efa_count(self) -> int:
        """EFA interfaces of the type."""
        return len(self.efa_cards)


@lru_cache(maxsize=1)
def known() -> tuple[str, ...]:
    """Every type that can be asked for."""
    return tuple(expected.known_types())


def _efa_cards(instance_type: str, count: int) -> tuple[int, ...]:
    if instance_type in _EFA_CARDS:
        return _EFA_CARDS[instance_type]
    first = 1 if instance_type in _ENA_ONLY_CARD_0 else 0
    return tuple(range(first, first + count))


def _capacities(instance_type: str) -> frozenset[str]:
    if instance_type in _BLOCK_ONLY:
        return frozenset({CAPACITY_BLOCK})
    kinds = {ON_DEMAND, RESERVATION}
    if instance_type in _BY_BLOCK:
        kinds.add(CAPACITY_BLOCK)
    if instance_type not in _NOT_SPOT:
        kinds.add(SPOT)
    return frozenset(kinds)


@lru_cache(maxsize=128)
def facts(instance_type: str) -> NetworkFacts:
    """Facts of a type. Raises ValueError naming the nearest known types."""
    if instance_type not in known():
        near = ", ".join(get_close_matches(instance_type, known(), n=3, cutoff=0.4)) or "p5.48xlarge, g6.xlarge"
        raise ValueError(f"a GPU, Trainium or Inferentia type of the table, for example {near}")
    entry = expected.resolve(instance_type)
    return NetworkFacts(
        instance_type=instance_type,
        accelerator=entry.accelerator or "",
        architecture=entry.arch or "x86_64",
        efa_cards=_efa_cards(instance_type, entry.efa_count or 0),
        capacities=_capacities(instance_type),
        gpu_count=entry.gpu_count or 0,
    )
