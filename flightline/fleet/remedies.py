"""What to do about a finding, in words that follow from its own remedy and not from all that its check might find."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from flightline_node.model import Remedy, Status, as_status

from .cause_table import CAUSES
from .checks import remedy_of

TITLES: Mapping[Remedy, str] = {
    Remedy.REPLACE: "Replace the instance",
    Remedy.CONTACT_SUPPORT: "Contact support",
    Remedy.REBOOT: "Reboot the node",
    Remedy.RESET_GPU: "Reset the GPU",
    Remedy.UPDATE_SOFTWARE: "Update software",
    Remedy.FIX_CONFIG: "Fix the configuration",
    Remedy.RESTART_APP: "Restart the application",
    Remedy.INVESTIGATE: "Investigate",
    Remedy.NONE: "No remedy named",
}
"""What each remedy asks for, in the order to act: the one that makes the others needless comes first."""

ORDER: Mapping[Remedy, int] = {remedy: place for place, remedy in enumerate(TITLES)}

_HARDWARE: Mapping[Remedy, str] = {
    Remedy.REPLACE: "Drain the node, keep its bundle, and replace the instance.",
    Remedy.CONTACT_SUPPORT: "Drain the node and open a case with its bundle.",
    Remedy.REBOOT: "Drain the node, reboot it and judge it again; if the same is found, replace the instance.",
    Remedy.RESET_GPU: "Drain the node, reset its GPUs (nvidia-smi -r, or a reboot) and judge it again.",
    Remedy.RESTART_APP: "End the process or job that is named, then judge the node again.",
}
"""Remedies that say by themselves what to do."""

_UNMEASURED = "Find out why nothing was measured, then judge the node again."
_OTHER: Mapping[Remedy, str] = {
    Remedy.UPDATE_SOFTWARE: "Bring the software that is named to the version wanted, then judge the node again.",
    Remedy.FIX_CONFIG: "Correct what is named, then judge the node again.",
    Remedy.INVESTIGATE: "Read the message and its evidence.",
}
_CAUSES = {cause.id: cause.do for cause in CAUSES if cause.do}
_HARDWARE_STEP = re.compile(
    r"(?:[^:(]*: )?(?:do it now|reboot|replace|reset|a reboot|a scheduled reboot)\b", re.IGNORECASE
)
_LISTS = re.compile(r"do what|by severity", re.IGNORECASE)
"""Texts that only tell how to read the remedy's word."""

_CONDITION = re.compile(r"(?:if|else|otherwise)\b", re.IGNORECASE)


def as_remedy(word: object) -> Remedy:
    """Return the remedy of a word; INVESTIGATE for one that no version knows."""
    try:
        return Remedy(str(word))
    except ValueError:
        return Remedy.INVESTIGATE


def how(finding: Mapping[str, Any], cause: str = "") -> str:
    """What to do about a finding, in a sentence or two. cause: of which it is the root, by its id."""
    check, remedy = str(finding.get("check", "")), as_remedy(finding.get("remedy", "NONE"))
    return in_words(check, remedy, as_status(finding.get("status")), cause)


def in_words(check: str, remedy: Remedy, status: Status, cause: str = "") -> str:
    """The same from its parts. Of the check's own text only that is said which the remedy's word leaves open."""
    if cause in _CAUSES:
        return _CAUSES[cause]
    if remedy in _HARDWARE:
        return _HARDWARE[remedy]
    if status is Status.UNKNOWN and remedy is Remedy.INVESTIGATE and check not in _JUDGED_WHOLE:
        return _UNMEASURED
    text = remedy_of(check)
    return ("" if _LISTS.match(text) else " ".join(_soft(text))) or _OTHER.get(remedy, "")


_JUDGED_WHOLE = frozenset({"reachable", "node"})
"""Rows of hosts that gave no answer: the texts of these checks are about just that."""


def is_general(text: str) -> bool:
    """Does it say the same whichever check asks for it, so that the check's name adds nothing?"""
    return text in {*_HARDWARE.values(), *_OTHER.values(), *_CAUSES.values(), _UNMEASURED}


def _soft(text: str) -> Iterator[str]:
    """A check's sentences but for those that begin with a step that another remedy's word stands for."""
    dropped = False
    for sentence in re.split(r"(?<=\.) (?=[A-Z'])", text) if text else ():
        clauses = sentence.rstrip(".").split("; ")
        kept = []
        for clause in clauses:
            dropped = bool(_HARDWARE_STEP.match(clause)) or (dropped and bool(_CONDITION.match(clause)))
            if not dropped:
                kept.append(clause)
        if kept:
            joined = "; ".join(kept)
            yield (joined if kept[0] is clauses[0] else joined[0].upper() + joined[1:]) + "."
