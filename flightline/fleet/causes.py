"""What is behind a node's findings: which one is the root, and which ones only follow from it.

Nothing is hidden: an explained finding keeps its place in every list of findings and says what explains it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flightline_node.judge.checks.gpu_topology import unread_pairs
from flightline_node.judge.checks.nvlink_links import SAID
from flightline_node.judge.kernel_history import pci_key
from flightline_node.judge.reasons import NOT_MEASURED as NOT_MEASURED_REASONS
from flightline_node.model import BLOCKING, Remedy, Status, as_remedy, as_status

from .cause_table import CAUSES, Cause, Effect, Match, Says
from .remedies import ORDER

Finding = dict[str, Any]
"""A finding as flightline_node.model.Finding.to_dict() makes it."""

EXPLAINED = "explained_by"
NOT_MEASURED = "not_measured"
"""The cause of checks that one broken probe left without an answer, in the same words."""

READ_CHARS = 400
"""Of a message: what is quoted elsewhere stands at its beginning."""

NEVER_FOLDED = frozenset({Remedy.REPLACE, Remedy.CONTACT_SUPPORT})
"""Remedies that another cause's does not bring about: whoever asks for one stands for itself."""

_ADDRESS = re.compile(r"\b(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]\b", re.IGNORECASE)
"""How a tool names a GPU in its own words, which are the evidence."""


@dataclass
class Trouble:
    """One root finding with what it explains. cause: its id in the table, NOT_MEASURED, or "" where it stands alone."""

    root: Finding
    cause: str = ""
    explained: list[Finding] = field(default_factory=list)

    @property
    def said(self) -> str:
        """'gpu_lost: a GPU is lost (+8 findings)'."""
        return f"{self.root['check']}: {self.root['message']}{self.folded}"

    @property
    def folded(self) -> str:
        """' (+8 findings)'; '' where it explains nothing."""
        more = len(self.explained)
        return f" (+{more} finding{'s' if more > 1 else ''})" if more else ""


@dataclass(frozen=True)
class _BlockingFinding:
    """A blocking finding, read once."""

    number: int
    finding: Finding
    check: str
    status: Status
    remedy: Remedy
    reason: str
    device: Mapping[str, Any]


def troubles(findings: Iterable[Finding]) -> list[Trouble]:
    """A node's blocking findings as its root causes, most urgent remedy first; every one of them is in there once."""
    seen = [_read(number, finding) for number, finding in enumerate(findings) if _blocks(finding)]
    if not seen:
        return []
    found, told = _by_table(seen)
    alone = [one for one in seen if one.number not in told]
    return sorted([*found, *_by_reason(alone)], key=_urgency)


def annotate(found: Iterable[Trouble]) -> None:
    """Write into each explained finding what explains it."""
    for trouble in found:
        root = trouble.root
        for finding in trouble.explained:
            words = {"check": root["check"], "message": str(root["message"])[:READ_CHARS]}
            finding[EXPLAINED] = {"cause": trouble.cause, **words}


def _blocks(finding: Finding) -> bool:
    return as_status(finding.get("status")) in BLOCKING


def _read(number: int, finding: Finding) -> _BlockingFinding:
    device, reason = finding.get("device"), str(finding.get("reason") or "")
    named = device if isinstance(device, Mapping) and device else _addressed(finding, reason)
    return _BlockingFinding(
        number,
        finding,
        str(finding.get("check", "")),
        as_status(finding.get("status")),
        as_remedy(finding.get("remedy")),
        reason,
        named,
    )


def _addressed(finding: Finding, reason: str) -> Mapping[str, Any]:
    """The GPU whose PCI address a tool says in place of an answer."""
    said = finding.get("evidence") if reason.startswith(f"{SAID.id}.") else None
    found = _ADDRESS.search(str(said[0])) if said else None
    return {"pci": found.group()} if found else {}


def _by_table(seen: Sequence[_BlockingFinding]) -> tuple[list[Trouble], set[int]]:
    """Troubles that the table knows, and the numbers of all findings in them."""
    found: list[Trouble] = []
    told: set[int] = set()
    for cause in CAUSES:
        roots = _roots(cause, [one for one in seen if one.number not in told])
        told.update(root.number for root in roots)
        lacking = sum(_lacking(root) for root in roots)
        for root in roots:
            explained = [one for one in seen if one.number not in told and _explains(cause, root, one, lacking)]
            told.update(one.number for one in explained)
            found.append(Trouble(root.finding, cause.id, [one.finding for one in explained]))
    return found, told


def _roots(cause: Cause, seen: Sequence[_BlockingFinding]) -> list[_BlockingFinding]:
    """The most telling finding of the cause for each device; one for the whole node where none names a device."""
    candidates = [(place, one) for one in seen for place, words in enumerate(cause.roots) if _fits(words, one)]
    candidates.sort(key=lambda pair: (ORDER[pair[1].remedy], pair[0], pair[1].number))
    named = [one for _, one in candidates if one.device]
    roots: list[_BlockingFinding] = []
    for one in named or [one for _, one in candidates[:1]]:
        if not any(_same(root.device, one.device) for root in roots):
            roots.append(one)
    return roots


def _fits(words: Says, one: _BlockingFinding) -> bool:
    return words.fits(one.check, one.status, one.reason)


def _explains(cause: Cause, root: _BlockingFinding, one: _BlockingFinding, lacking: int) -> bool:
    if one.remedy in NEVER_FOLDED and one.remedy is not root.remedy and not cause.overrides:
        return False
    return any(_fits(effect.says, one) and _placed(effect, root, one, lacking) for effect in cause.effects)


def _placed(effect: Effect, root: _BlockingFinding, one: _BlockingFinding, lacking: int) -> bool:
    if effect.match is Match.ANY:
        return True
    if effect.match is Match.DEVICE:
        return _same(root.device, one.device)
    if one.device:
        return False
    if effect.match is Match.COUNT:
        return 0 < _lacking(one, 0) <= lacking
    return effect.match is Match.NODE or _pairs(one, lacking)


def _lacking(one: _BlockingFinding, default: int = 1) -> int:
    """How many parts a finding says are missing; one for the device it names."""
    seen, wanted = one.finding.get("measured"), one.finding.get("expected")
    if one.device or not isinstance(seen, int) or not isinstance(wanted, int) or seen >= wanted:
        return default
    return wanted - seen


def _pairs(one: _BlockingFinding, lost: int) -> bool:
    """Are no more GPU pairs unread than have one of the lost GPUs in them?"""
    unread, pairs = unread_pairs(one.finding.get("measured"), one.finding.get("expected"))
    gpus = next((count for count in range(2, 1024) if count * (count - 1) // 2 >= pairs), 0)
    left = max(gpus - lost, 0)
    return unread <= pairs - left * (left - 1) // 2


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Are both certainly the same part? The identity that says most decides, of those that both have.

    A GPU's name is its model, so names only tell parts without an index apart.
    """
    numbered = "index" in one or "index" in other
    for key in ("pci", "uuid", "serial", "mount", "index" if numbered else "name"):
        mine, theirs = one.get(key), other.get(key)
        if mine not in (None, "") and theirs not in (None, ""):
            alike = pci_key(str(mine)) == pci_key(str(theirs)) if key == "pci" else mine == theirs
            return bool(alike and one.get("port") == other.get("port"))
    return False


def _by_reason(seen: Sequence[_BlockingFinding]) -> Iterator[Trouble]:
    """What the table does not know: what one output left unmeasured is one trouble, anything else stands alone."""
    alike: dict[object, Trouble] = {}
    for one in seen:
        joins = one.status is Status.UNKNOWN and one.reason.partition(".")[0] in NOT_MEASURED_REASONS
        key = (one.reason, one.remedy) if joins and not one.finding.get("device") else one.number
        first = alike.setdefault(key, Trouble(one.finding))
        if first.root is not one.finding:
            first.cause = NOT_MEASURED
            first.explained.append(one.finding)
    yield from alike.values()


def _urgency(trouble: Trouble) -> tuple[int, bool, int]:
    """The remedy that makes the others needless first; of equals the measured fault, then what explains most."""
    unknown = as_status(trouble.root.get("status")) is not Status.FAIL
    return ORDER[as_remedy(trouble.root.get("remedy"))], unknown, -len(trouble.explained)
