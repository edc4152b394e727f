"""Network interfaces of a GPU node's launch template.

Rules of AWS' page on EFA for accelerated types (efa-acc-inst-types, 2026): the primary interface is card 0, device 0,
an ENA `interface`, never efa-only, because efa-only carries no IP traffic. Every other EFA card carries one
`efa-only` at device 0; card 0, where it can hold an EFA, carries its own at device 1. Card 0 of P6-B300 and P6e
is ENA only. On a type with a single card that is EFA-capable, one `efa` interface is both, which saves an address.
"""

from dataclasses import dataclass

from infra.planning.instance_types import facts

ENA = "interface"
EFA = "efa"
EFA_ONLY = "efa-only"


@dataclass(frozen=True)
class PlannedInterface:
    """One network interface. kind: "interface" (ENA), "efa" or "efa-only".

    public_address: False on the primary interface, None where EC2 takes no such argument: EFA-only has no IP
    address, and with several interfaces EC2 refuses the argument when it is true, so only "no" is ever said.
    """

    card: int
    device: int
    kind: str
    delete_on_termination: bool = True
    public_address: bool | None = None


def interfaces(instance_type: str, efa: bool) -> tuple[PlannedInterface, ...]:
    """The interfaces of one instance by card, then device; the primary (card 0, device 0) is first.

    Raises ValueError when EFA is asked of a type that has none.
    """
    cards = facts(instance_type).efa_cards
    if not efa:
        return (_primary(ENA),)
    if not cards:
        raise ValueError(f"a type with EFA; {instance_type} has none")
    if cards == (0,):
        return (_primary(EFA),)
    return (_primary(ENA), *(PlannedInterface(card, 1 if card == 0 else 0, EFA_ONLY) for card in cards))


def _primary(kind: str) -> PlannedInterface:
    return PlannedInterface(card=0, device=0, kind=kind, public_address=False)


PRIMARY = _primary(ENA)
"""The one interface of an instance without EFA."""


def efa_count(layout: tuple[PlannedInterface, ...]) -> int:
    """Interfaces that carry EFA: what a node must show after boot."""
    return sum(1 for item in layout if item.kind in (EFA, EFA_ONLY))
