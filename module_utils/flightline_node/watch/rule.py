"""The rule: a node that has found a fault leaves service, waits its turn, or stays in service as a suspect. Pure.

One fault of one node is hardware. The same one on many is a driver, a file system, a rollout: draining for it costs
the fleet and mends nothing. So whoever takes nodes out asks first how many are out, or on their way out, for the same
reason.

Nobody counts for all. Each writes a mark beside its own node in the scheduler, reads everybody's in one call, and goes
by what it read. A node leaves only by a mark GOING that was there before it read, and only while fewer than the budget
are GOING or OUT. Of any that leave, the one that marked last has seen all others: so they are never more than the
budget, whatever the order, the clocks, and who is killed between two steps.
"""

from __future__ import annotations

from typing import Callable, Iterable, List, NamedTuple, Protocol, Tuple

NONE, GOING, WAITS, HELD, TOLD, OUT = "", "going", "waits", "held", "told", "out"
"""Marks of a node, for one reason. TOLD: held, and the one that has said so for all."""
MARKS = (GOING, WAITS, HELD, TOLD)
CLAIM, WAIT, DRAIN, HOLD = "claim", "wait", "drain", "hold"
"""What to do next: mark GOING; mark WAITS and ask again; drain; mark HELD and stay in service, a suspect."""


class Row(NamedTuple):
    """A node of the group and its mark. age_s: since when it is OUT; 0 for the others."""

    node: str
    mark: str
    age_s: float = 0.0


class RulePolicy(NamedTuple):
    """Shares of a group, in percent. window_s: how long one that is out stands in the way of the next."""

    budget_percent: float = 10.0
    breaker_percent: float = 100 / 3
    window_s: float = 600.0


def most(size: int, percent: float) -> int:
    """That share of a group, at least one node; none for a share of 0."""
    return max(1, int(size * percent / 100)) if percent else 0


class Decision(NamedTuple):
    """What to do, and why in words."""

    do: str
    why: str = ""


def decide(me: str, rows: Iterable[Row], size: int, policy: RulePolicy, by_person: bool = False) -> Decision:
    """What this node does next. rows: those of its group with a mark for the same reason, its own among them.

    by_person: somebody looked at the suspects and let go on, so they hold up nobody.
    """
    marks = {row.node: row for row in rows}
    mine = marks.pop(me, Row(me, NONE)).mark
    out = [row for row in marks.values() if row.mark == OUT]
    recent = [row for row in out if row.age_s <= policy.window_s]
    going = [row for row in marks.values() if row.mark == GOING]
    held = [row for row in marks.values() if row.mark in (HELD, TOLD) and not by_person]
    waits = [row for row in marks.values() if row.mark == WAITS and (mine != WAITS or row.node < me)]
    budget = most(size, policy.budget_percent)
    # However old: a fault that creeps through the fleet must not take it all, one window after the other.
    cap = max(budget, most(size, policy.breaker_percent)) if budget else 0
    said = f"{len(out)} of {size} are out for the same reason, {len(recent)} within {policy.window_s / 60:g} min"
    if len(recent) >= budget or len(out) >= cap:
        return Decision(HOLD, f"budget: {said}, at most {budget} ({policy.budget_percent:g} %) may be")
    free = min(budget - len(recent), cap - len(out)) - len(going)
    if mine in (HELD, TOLD) or held:
        return Decision(HOLD, f"{len(held) + (mine in (HELD, TOLD))} of {size} are suspects of the same, {said}")
    if mine == GOING:
        return Decision(DRAIN) if free > 0 else Decision(WAIT, f"{len(going)} others are on their way out")
    return Decision(CLAIM) if free > len(waits) else Decision(WAIT, f"{len(going) + len(waits)} others go first")


class Marks(Protocol):
    """The marks of one group for one reason, as a scheduler keeps them. Each method may raise its errors."""

    me: str

    def rows(self) -> Tuple[List[Row], int]:
        """The rows, and the size of the group. One call."""

    def mark(self, mark: str) -> None:
        """Set this node's; it is there when this returns."""

    def drain(self) -> None:
        """Take this node out."""


class MarkLostError(Exception):
    """A mark that the scheduler took is not there: it lies, or somebody took it away. Nothing is decided."""


PAUSES_S = (0.02, 0.04, 0.08, 0.16, 0.3, 0.5, 0.5, 0.5)
"""Between two looks while others decide: each needs some 20 ms for it. Then this node is a suspect."""


def follow(
    marks: Marks, policy: RulePolicy, sleep: Callable[[float], object], by_person: bool = False, eager: bool = False
) -> Tuple[Decision, List[Row], int]:
    """Ask and do until it is decided: DRAIN (it is out) or HOLD (it is a suspect); with the last rows and the size.

    by_person: who asks keeps its own list of what is held up, and marks nobody a suspect. eager: the node is known to
    have no mark, so it marks itself before the first look: a look less before it is out.
    """
    left, written = list(PAUSES_S), GOING if eager else ""
    if eager:
        marks.mark(GOING)
    while True:
        rows, size = marks.rows()
        mine = next((row.mark for row in rows if row.node == marks.me), NONE)
        if written not in ("", mine):
            raise MarkLostError(f"the mark {written} was taken, and the node has {mine or 'none'}")
        suspect = mine in (HELD, TOLD)
        asked = [row for row in rows if row.node != marks.me] if by_person and suspect else rows
        found = decide(marks.me, asked, size, policy, by_person)
        if found.do == DRAIN:
            marks.drain()
            return found, rows, size
        if found.do == WAIT and not left:
            found = Decision(HOLD, found.why)
        refused = mine if suspect else NONE if by_person else HELD
        wanted = {CLAIM: GOING, WAIT: WAITS, HOLD: refused}[found.do]
        if wanted != mine:
            marks.mark(wanted)
            written = wanted
        if found.do == HOLD:
            return found, rows, size
        if found.do == WAIT:
            sleep(left.pop(0))


def tells(me: str, rows: Iterable[Row]) -> bool:
    """Is it this suspect's to say so for all? The first by name does, unless one has; asked when all have settled."""
    marks = [row for row in rows if row.mark in (HELD, TOLD)]
    return not any(row.mark == TOLD for row in marks) and min((row.node for row in marks), default="") == me
