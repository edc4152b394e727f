"""Which ranks did not arrive at what the others wait in, told from those that only wait themselves. Pure.

A rank that others wait for and that waits for nobody holds them up. Where that is several, where all have arrived, or
where they wait for one another, it is not known; a rank without a dump is not heard of, and to blame only if it is the
single one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .flight import DONE, CollectiveCall, Dump, Group, Transfer

ABSENT, SILENT, MISMATCH = "absent", "silent", "mismatch"


@dataclass(frozen=True)
class Suspect:
    """One rank that holds the others up (None: it is not known which), and how that shows."""

    rank: int | None
    kind: str
    why: str


def suspects(dumps: Sequence[Dump], world: int) -> list[Suspect]:
    """Ranks that hold up the rest: those that called something else, those behind, the one that wrote no dump.

    One with rank None says that something hangs and why nobody is named; none says that nothing is seen to hang.
    """
    if not dumps:
        return []
    everybody = set(range(world)).union(*(dump.members for dump in dumps))
    return _mismatched(dumps) or _Waits(dumps, everybody).suspects()


class _Waits:
    """Who waits for whom. seen: by the rank that waits, something that it waits in."""

    def __init__(self, dumps: Sequence[Dump], everybody: set[int]) -> None:
        self.dumps = {dump.rank: dump for dump in dumps}
        self.silent = sorted(everybody - set(self.dumps))
        self.tells = any(dump.tells_ends for dump in dumps)
        self.newest: dict[Group, dict[int, int]] = {}
        self.done: dict[Group, int] = {}
        for rank, call in ((dump.rank, call) for dump in dumps for call in dump.calls):
            reached = self.newest.setdefault(call.key, {})
            reached[rank] = max(call.sequence, reached.get(rank, -1))
            if call.state == DONE:
                self.done[call.key] = max(call.sequence, self.done.get(call.key, -1))
        self.seen: dict[int, CollectiveCall | Transfer] = {}
        self.waits = {rank: self._blockers(dump) for rank, dump in sorted(self.dumps.items())}

    def suspects(self) -> list[Suspect]:
        """The ranks at the ends of the chains."""
        roots = sorted({one for held in self.waits.values() for one in held if not self.waits.get(one)})
        behind = [rank for rank in roots if rank in self.dumps]
        if len(self.silent) == 1 and (self.silent == roots or not self.tells):
            return [Suspect(self.silent[0], SILENT, self._no_dump())]
        if not self.silent and behind and 2 * len(behind) < len(self.dumps):
            return [Suspect(rank, ABSENT, self._late(rank)) for rank in behind]
        # Gloo never says what is done: only that somebody is waited for shows there.
        if self.silent or any(self.waits.values()) or (self.tells and self.seen):
            return [Suspect(None, SILENT if self.silent else ABSENT, self._open(roots))]
        return []

    def _open_of(self, dump: Dump) -> list[CollectiveCall | Transfer]:
        """What a rank waits in. NCCL: the first of each group that is not done (calls run ahead). Gloo: the newest."""
        if not self.tells:
            every: list[CollectiveCall | Transfer] = [*dump.calls, *dump.transfers]
            return sorted(every, key=lambda one: one.at_ns)[-1:]
        first = {
            call.key: call
            for call in sorted(dump.calls, key=lambda one: -one.sequence)
            if call.state != DONE and call.sequence > self.done.get(call.key, -1)
        }
        return [*first.values(), *(one for one in dump.transfers if one.state != DONE)]

    def _blockers(self, dump: Dump) -> set[int]:
        """The ranks that one rank waits for."""
        found: set[int] = set()
        for one in self._open_of(dump):
            self.seen[dump.rank] = one
            if isinstance(one, Transfer):
                other = self.dumps.get(one.peer)
                found |= set() if other and _meets(other, dump.rank, one, self.tells) else {one.peer}
            else:
                reached = self.newest[one.key]
                found |= {rank for rank in one.members or reached if reached.get(rank, -1) < one.sequence}
        return found - {dump.rank}

    def _no_dump(self) -> str:
        waiting = Counter(_named(call) for call in self.seen.values()).most_common(1)
        which = "" if len(self.silent) == 1 else f"ranks {', '.join(map(str, self.silent))} "
        return f"{which}wrote no flight recorder dump, {len(self.dumps)} others did" + (
            f" and wait in {waiting[0][0]}" if waiting else ""
        )

    def _late(self, rank: int) -> str:
        held = [one for one, blockers in self.waits.items() if rank in blockers]
        call = self.seen[held[0]]
        if isinstance(call, Transfer):
            return f"waits for nobody; rank {held[0]} waits in {_named(call)}"
        last = self.newest[call.key].get(rank)
        reached = f"reached number {last}" if last is not None else "called nothing of this group"
        return f"{reached}; {len(held)} others wait in {_named(call)}"

    def _open(self, roots: Sequence[int]) -> str:
        if self.silent:
            return self._no_dump()
        if roots:
            return f"ranks {', '.join(map(str, roots))} have not arrived where {len(self.seen)} wait"
        if any(self.waits.values()):
            return f"ranks {', '.join(map(str, sorted(self.waits)))} wait for one another"
        call = _named(next(iter(self.seen.values())))
        return f"all that are heard of have arrived at {call}, and it is not done: the way between them, or a GPU"


def _named(call: CollectiveCall | Transfer) -> str:
    if isinstance(call, Transfer):
        return f"{'a send to' if call.sending else 'a receive from'} rank {call.peer}"
    return f"{call.what}, number {call.sequence} of group {call.group}"


def _meets(other: Dump, rank: int, transfer: Transfer, tells: bool) -> bool:
    """Has the other rank called the counterpart? Where no end is told, of each the same number must be there."""
    counterparts = [one for one in other.transfers if one.peer == rank and one.sending != transfer.sending]
    return any(one.state != DONE for one in counterparts) if tells else bool(counterparts)


def _mismatched(dumps: Sequence[Dump]) -> list[Suspect]:
    """Ranks that called another collective than most, at the first number where they differ; None without a most."""
    places: dict[tuple[int, Group], dict[int, CollectiveCall]] = {}
    for dump in dumps:
        for call in dump.calls:
            places.setdefault((call.sequence, call.key), {})[dump.rank] = call
    for (sequence, (group, _)), called in sorted(places.items()):
        kinds = {rank: (call.operation, call.elements) for rank, call in called.items()}
        (usual, count), *rest = Counter(kinds.values()).most_common()
        if rest:
            return _minority(called, {rank for rank, kind in kinds.items() if kind != usual}, count, sequence, group)
    return []


def _minority(
    called: Mapping[int, CollectiveCall], odd: set[int], count: int, sequence: int, group: str
) -> list[Suspect]:
    usual = next(call.what for rank, call in sorted(called.items()) if rank not in odd)
    if 2 * count > len(called):
        return [
            Suspect(rank, MISMATCH, f"called {called[rank].what} where {count} others called {usual}, "
                    f"number {sequence} of group {group}")
            for rank in sorted(odd)
        ]  # fmt: skip
    texts = ", ".join(f"rank {rank} {call.what}" for rank, call in sorted(called.items())[:8])
    return [Suspect(None, MISMATCH, f"number {sequence} of group {group} is called by no majority: {texts}")]
