"""Which step a trouble asks for, and which comes next when a step did not help. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from flightline_node.know.remedies import PERSON
from flightline_node.model import Remedy

LADDER = sorted((remedy for remedy in Remedy if remedy.row.rung), key=lambda remedy: remedy.row.rung)
AUTOMATIC = frozenset(remedy for remedy in LADDER if remedy.row.by != PERSON)
"""Steps that a machine may take; the rest is a person's."""


@dataclass(frozen=True)
class LadderChoice:
    """What to do next: a step, or None where the node is held for a person."""

    step: Remedy | None
    why: str


def possible(there: Collection[str]) -> frozenset[Remedy]:
    """The steps that can be taken with what is there: EC2, a scheduler by its name."""
    return frozenset(remedy for remedy in AUTOMATIC if set(remedy.row.needs) <= set(there))


def action_of(step: str) -> str:
    """What is done for a step of the ladder; '' for what is none, as a release."""
    return Remedy(step).row.action if step in AUTOMATIC else ""


def choose(asked: Iterable[str], tried: Collection[Remedy], able: Collection[Remedy] = AUTOMATIC) -> LadderChoice:
    """Return the lowest able step that is not below what is asked and above all that was tried.

    asked: the remedies of a node's root findings, as they are spelled there. tried: steps taken for the same trouble
    within the site's window. What is not on the ladder is for a person, unless something beside it is not.
    """
    words = list(asked)
    climbable = [Remedy(word) for word in words if word in LADDER]
    if not climbable:
        named = ", ".join(sorted(set(words))) or "nothing"
        return LadderChoice(None, f"the finding asks for {named}: no step of the ladder, so for a person")
    wanted, reached = max(climbable, key=_rung), max(tried, key=_rung, default=Remedy.NONE)
    for step in LADDER:
        if step in AUTOMATIC and step in able and _rung(step) >= _rung(wanted) and _rung(step) > _rung(reached):
            return LadderChoice(step, _why(wanted, step, reached))
    if not _rung(reached) and wanted.row.hold:
        return LadderChoice(None, f"the finding asks for {wanted}: {wanted.row.hold}")
    below = f"{reached} did not help" if _rung(reached) else f"the finding asks for {wanted}"
    return LadderChoice(None, f"{below} and no further step is possible here: for a person")


def _why(wanted: Remedy, step: Remedy, reached: Remedy) -> str:
    if step is wanted:
        return f"the finding asks for {wanted}"
    if _rung(reached) >= _rung(wanted):
        return f"{reached} was tried for the same trouble within the window"
    return f"the finding asks for {wanted}, which is not possible here"


def _rung(remedy: Remedy) -> int:
    return remedy.row.rung
