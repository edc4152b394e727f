"""What to do about a finding: its remedy's row says it, or its check where the remedy leaves it open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from flightline_node.model import Remedy, Status, as_remedy, as_status

from .cause_table import CAUSES
from .checks import advice_of

ORDER: Mapping[Remedy, int] = {remedy: remedy.row.rank for remedy in sorted(Remedy, key=lambda one: one.row.rank)}
"""The remedies in the order to act: the one that makes the others needless comes first."""

_UNMEASURED = "Find out why nothing was measured, then judge the node again."
_CAUSES = {cause.id: cause.do for cause in CAUSES if cause.do}
_JUDGED_WHOLE = frozenset({"reachable", "node"})
"""Rows of hosts that gave no answer: the texts of these checks are about just that."""


class Advice(NamedTuple):
    """What to do, in a sentence or two. own: in words of the check, which mean little without its name."""

    text: str
    own: bool = False


def how(finding: Mapping[str, Any], cause: str = "") -> Advice:
    """What to do about a finding. cause: of which it is the root, by its id."""
    check, remedy = str(finding.get("check", "")), as_remedy(finding.get("remedy", "NONE"))
    return advice(check, remedy, as_status(finding.get("status")), cause)


def advice(check: str, remedy: Remedy, status: Status, cause: str = "") -> Advice:
    """The same from its parts. Of the check's own text only that is said which the remedy's word leaves open."""
    if cause in _CAUSES:
        return Advice(_CAUSES[cause])
    if not remedy.row.leaves_open:
        return Advice(remedy.row.advice)
    if status is Status.UNKNOWN and remedy is Remedy.INVESTIGATE and check not in _JUDGED_WHOLE:
        return Advice(_UNMEASURED)
    text = advice_of(check)
    return Advice(text or remedy.row.advice, bool(text))
