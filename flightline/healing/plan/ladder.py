"""Which step a trouble asks for, and which comes next when a step did not help. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from flightline_node.model import Remedy

LADDER = (
    Remedy.NONE,
    Remedy.RESTART_APP,
    Remedy.RESET_GPU,
    Remedy.REBOOT,
    Remedy.REPLACE,
    Remedy.CONTACT_SUPPORT,
)
AUTOMATIC = frozenset(LADDER[1:-1])
"""Steps that a machine may take; the rest is a person's."""

RUNG = {remedy: rung for rung, remedy in enumerate(LADDER)}


@dataclass(frozen=True)
class LadderChoice:
    """What to do next: a step, or None where the node is held for a person."""

    step: Remedy | None
    why: str


def choose(asked: Iterable[str], tried: Collection[Remedy], able: Collection[Remedy] = AUTOMATIC) -> LadderChoice:
    """Return the lowest able step that is not below what is asked and above all that was tried.

    asked: the remedies of a node's root findings, as they are spelled there. tried: steps taken for the same trouble
    within the site's window. What is not on the ladder is for a person, unless something beside it is not.
    """
    words = list(asked)
    climbable = [Remedy(word) for word in words if word in AUTOMATIC or word == Remedy.CONTACT_SUPPORT]
    if not climbable:
        named = ", ".join(sorted(set(words))) or "nothing"
        return LadderChoice(None, f"the finding asks for {named}: no step of the ladder, so for a person")
    wanted = max(climbable, key=RUNG.__getitem__)
    reached = max((RUNG[step] for step in tried), default=0)
    for step in LADDER[max(RUNG[wanted], reached + 1) :]:
        if step in AUTOMATIC and step in able:
            return LadderChoice(step, _why(wanted, step, reached))
    if not reached and wanted is Remedy.CONTACT_SUPPORT:
        return LadderChoice(None, "the finding asks for CONTACT_SUPPORT: open a case with the bundle")
    below = f"{LADDER[reached]} did not help" if reached else f"the finding asks for {wanted}"
    return LadderChoice(None, f"{below} and no further step is possible here: for a person")


def _why(wanted: Remedy, step: Remedy, reached: int) -> str:
    if step is wanted:
        return f"the finding asks for {wanted}"
    if reached >= RUNG[wanted]:
        return f"{LADDER[reached]} was tried for the same trouble within the window"
    return f"the finding asks for {wanted}, which is not possible here"
