"""What checks say of lines that nobody understood."""

from __future__ import annotations

from dataclasses import replace
from typing import Iterable, List, Optional, Sequence

from ..model import Facts, Finding, Status
from . import reasons
from .context import Context
from .kernel_history import when

SHOWN = 7


def not_understood(context: Context, shapes: Sequence[Facts]) -> Finding:
    """UNKNOWN, or FAIL where a part says that it failed, with the lines quoted, grouped and counted."""
    failed = any(shape.get("part_failed") for shape in shapes)
    shapes = sorted(shapes, key=lambda shape: not shape.get("part_failed"))
    count = sum(shape["count"] for shape in shapes)
    worst = sorted(shapes, key=lambda shape: (not shape.get("part_failed"), -int(shape["count"])))
    what = ("1 line" if count == 1 else f"{count} lines") + (f" of {len(shapes)} sorts" if len(shapes) > 1 else "")
    return context.because(
        Status.FAIL if failed else Status.UNKNOWN,
        reasons.PART_FAILED if failed else reasons.NOT_UNDERSTOOD,
        f"{what} in an error's shape that no rule knows: {shapes[0]['text'][:200]}",
        *(count, 0, "lines"),
        evidence=[_told(shape) for shape in worst[:SHOWN]],
    )


def _told(shape: Facts) -> str:
    """'3 times, first at T: the line'."""
    times = "once" if shape["count"] == 1 else f"{shape['count']} times"
    return f"{times}, first at {when(shape)}: {shape['text']}" if "time" in shape else f"{times}: {shape['text']}"


def accounted(context: Context, findings: Sequence[Finding], read: Iterable[Optional[Facts]]) -> List[Finding]:
    """The findings of a check, and what its logs hold beside: UNKNOWN in an error's shape, else a number in a PASS."""
    ledgers = [facts["not_understood"] for facts in read if facts and facts.get("not_understood")]
    shapes = [shape for ledger in ledgers for shape in ledger["unread"]]
    found, count = list(findings), sum(ledger["lines"] for ledger in ledgers)
    if shapes:
        return [*found, not_understood(context, shapes)]
    passed = next((place for place, one in enumerate(found) if one.status is Status.PASS), None)
    if count and passed is not None:
        found[passed] = replace(found[passed], message=f"{found[passed].message}; {count} lines were not understood")
    return found
