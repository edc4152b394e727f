"""Which ranks did not arrive at the collective that the others wait in. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .flight import DONE, CollectiveCall, Dump

ABSENT, SILENT, MISMATCH = "absent", "silent", "mismatch"


@dataclass(frozen=True)
class Suspect:
    """One rank that holds the others up, and how that shows."""

    rank: int
    kind: str
    why: str


def suspects(dumps: Sequence[Dump], world: int) -> list[Suspect]:
    """Ranks that hold up the rest: those that called something else, those behind, those that wrote no dump."""
    if not dumps:
        return []
    different = _mismatched(dumps)
    if different:
        return different
    waiting = _waiting(dumps)
    silent = sorted(set(range(world)) - {dump.rank for dump in dumps})
    why = f"wrote no flight recorder dump, {len(dumps)} others did" + (
        f" and wait in {_named(waiting)}" * bool(waiting)
    )
    behind = _behind(dumps, waiting) if waiting else []
    # A rank that is stopped or gone holds those up that are behind as well, where they wait for it.
    return [Suspect(rank, SILENT, why) for rank in silent] or behind


def _named(call: CollectiveCall | None) -> str:
    return f"{call.what}, number {call.sequence} of group {call.group}" if call else "nothing"


def _last(dump: Dump) -> dict[str, CollectiveCall]:
    """The newest collective of each group."""
    return {call.group: call for call in sorted(dump.calls, key=lambda call: call.sequence)}


def _waiting(dumps: Sequence[Dump]) -> CollectiveCall | None:
    """What most ranks wait in: the newest call of a rank that is not known to be completed. Gloo never says so."""
    newest = [
        max(calls, key=lambda call: call.at_ns)
        for dump in dumps
        if (calls := [call for call in _last(dump).values() if call.state != DONE])
    ]
    return max(Counter(newest).items(), key=lambda pair: (pair[1], pair[0].sequence))[0] if newest else None


def _behind(dumps: Sequence[Dump], waiting: CollectiveCall) -> list[Suspect]:
    """Members of the group whose newest collective comes before the one that is waited in."""
    reached = {dump.rank: _last(dump)[waiting.group].sequence for dump in dumps if waiting.group in _last(dump)}
    others = sum(sequence >= waiting.sequence for sequence in reached.values())
    return [
        Suspect(rank, ABSENT, f"reached number {sequence}; {others} others wait in {_named(waiting)}")
        for rank, sequence in sorted(reached.items())
        if sequence < waiting.sequence
    ]


def _mismatched(dumps: Sequence[Dump]) -> list[Suspect]:
    """Ranks that called another collective than most, at the first number where they differ."""
    places: dict[tuple[int, str], dict[int, CollectiveCall]] = {}
    for dump in dumps:
        for call in dump.calls:
            places.setdefault((call.sequence, call.group), {})[dump.rank] = call
    for (sequence, group), called in sorted(places.items()):
        words = Counter(call.what for call in called.values())
        (usual, count), *rest = words.most_common()
        if rest and count > rest[0][1]:
            return [
                Suspect(rank, MISMATCH, f"called {call.what} where {count} others called {usual}, "
                        f"number {sequence} of group {group}")
                for rank, call in sorted(called.items()) if call.what != usual
            ]  # fmt: skip
    return []
