"""Who is to blame for a run that ended badly or is slow: one answer from journals, logs and flight recorder. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flightline_node.train import named, ras, words
from flightline_node.train.texts import ABORTED, CRASHED, ENDED, KILLED, NODE, ORDERED, Seen
from flightline_node.train.words import GONE, HARDWARE, LATE, MEMORY, NETWORK, OTHERS, OWN, SPACE

from ..record.reasons import RANK
from . import hang, slow, standing
from .evidence import Evidence
from .flight import DONE, CollectiveCall, Dump
from .journals import Rank

MESSAGE_CHARS = 300
MOST_ILL = 2
"""Nodes. More at once are a switch, a file system or a program: their quarantine would cost the cluster. Own choice."""
FAILED, VANISHED, HUNG, SLOW, UNKNOWN = "failed", "vanished", "hung", "slow", "unknown"
DIED, STOPPED, MISMATCH, SOFTWARE, PATH, NOT_KNOWN = (
    "died", "stopped", "mismatch", "software", "network path", "not known")  # fmt: skip
LAGS = {ras.DEAD: (VANISHED, DIED), ras.MISMATCH: (HUNG, MISMATCH), ras.SILENT: (HUNG, STOPPED),
        ras.BEHIND: (HUNG, STOPPED)}  # fmt: skip
RAISED = (HARDWARE, OWN, MEMORY, SPACE)
"""Words of what a rank raised of its own accord."""


@dataclass(frozen=True)
class RankBlame:
    """One rank to blame (None: no single one). node: as the job named its host. step: where it shows, if known.

    kind: how it showed. cause: died, stopped, slow, mismatch, software, hardware, network path, or not known.
    own: the program did it, by all that is seen, and not the node.
    """

    kind: str
    rank: int | None
    node: str
    device: int | None
    why: str
    step: int | None = None
    own: bool = False
    cause: str = ""


def blames(ranks: Mapping[int, Rank], dumps: Sequence[Dump], said: Evidence | None = None) -> list[RankBlame]:
    """The first cause that there is evidence for; what follows from it is left out.

    In this order: whom the launcher saw hang, or stand apart in a hang, for what it did then ends the other ranks as
    well; what a rank raised of its own; a node or rank that died; ranks that others wait for; a rank that is
    gone without a word; the way between two. Where something broke and none of these names who, it is not known. A run
    that nothing ended is looked at for slow ranks.
    """
    case = _Case(ranks, dumps, said or Evidence())
    stages = (case.stalled, case.raised, case.died, case.missed, case.waited, case.rest, case.hung)
    return next(filter(None, (stage() for stage in stages)), None) or _slow(case)


def suspects(found: Sequence[RankBlame], source: str) -> dict[str, list[dict[str, Any]]]:
    """Findings of nodes that may be ill, for their quarantine; where many are to blame at once it is none of them.

    source: where the evidence is.
    """
    ill: dict[str, list[dict[str, Any]]] = {}
    for one in found:
        if one.node and not one.own:
            who = "a rank" if one.rank is None else f"rank {one.rank}"
            place = who + (f" at step {one.step}" if one.step is not None else "")
            finding = {
                "check": "training",
                "status": "FAIL",
                "message": f"{place} {one.kind}: {one.why}"[:MESSAGE_CHARS],
                "remedy": str(RANK.remedy),
                "reason": RANK.of(one.kind).id,
                "device": {} if one.device is None else {"index": one.device},
                "evidence": [f"{source}: {one.why}"],
            }
            ill.setdefault(one.node, []).append(finding)
    return ill if len(ill) <= MOST_ILL else {}


class _Case:
    """All evidence of one run, and a question for each kind of cause."""

    def __init__(self, ranks: Mapping[int, Rank], dumps: Sequence[Dump], said: Evidence) -> None:
        self.ranks, self.dumps, self.said = ranks, dumps, said
        failures = {rank: one.failure for rank, one in ranks.items() if one.failure}
        more = (one for one in said.seen if one.rank not in failures or one.word in (KILLED, CRASHED))
        self.asked = any(one.asked for one in dumps)
        """Dumps of a hang that the launcher saw, which are judged with all else that was seen of it."""
        self.began = min((one.at for one in said.stalls), default=0.0)
        """Of a hang that the launcher saw: what ended later may have been ended for it."""
        self.seen = [one for one in (*failures.values(), *more) if not self._after(one)]
        roots = [one for one in self.seen if one.root]
        self.dead = [one for one in self.words(KILLED, CRASHED) if one.root or one.memory or not roots]
        """Killed or crashed, but for what followed upon the end that torchrun saw first."""
        self.world = max([said.world, *(rank.world for rank in ranks.values())])

    def _after(self, one: Seen) -> bool:
        ends = (OWN, MEMORY, SPACE, KILLED, CRASHED, ABORTED, ENDED, ORDERED)
        return self.began > 0 and one.word in ends and not 0 < one.at <= self.began

    def words(self, *words: str) -> list[Seen]:
        """Evidence of these kinds, the earliest first; what has no time comes last."""
        return sorted((one for one in self.seen if one.word in words), key=lambda one: one.at or float("inf"))

    def at(self, rank: int | None, kind: str, cause: str, why: str, **more: Any) -> RankBlame:
        """A blame, with what is known of the rank."""
        known = self.ranks.get(rank, Rank(rank)) if rank is not None else Rank(-1)
        node = more.pop("node", "") or known.host or self.said.hosts.get(known.rank, "")
        local = more.pop("device", None)
        return RankBlame(kind, rank, node, local if known.device is None else known.device, why, cause=cause, **more)

    def nobody(self, why: str) -> list[RankBlame]:
        """Something broke, and who did it is not known."""
        return [self.at(None, UNKNOWN, NOT_KNOWN, why, own=True)]

    def stalled(self) -> list[RankBlame]:
        """Who held the others up when the launcher saw it, unless a rank had raised or been killed before."""
        stalls = self.said.stalls
        if not stalls or self.words(*RAISED, KILLED, CRASHED, NODE):
            return []
        seen = frozenset(rank for one in stalls for rank in one.seen)
        stopped = sorted(rank for one in stalls for rank in one.stopped)
        if stopped and len(stopped) <= named.MOST and 2 * len(stopped) < max(len(seen), self.world):
            return [self.at(rank, HUNG, STOPPED, stalls[0].text) for rank in stopped]
        # Of ranks of other nodes that nobody asked, nothing is known.
        by_calls = standing.suspects(self.said.stacks, seen) if len(seen) >= self.world else []
        dumps = [one for one in self.dumps if one.asked] if len(seen) >= self.world else []
        heard = {one.rank for one in dumps} | set(self.said.stacks)
        by_dumps = [one for one in hang.suspects(dumps, self.world) if one.rank in seen]
        by_dumps = [one for one in by_dumps if one.kind != hang.SILENT or one.rank not in heard]
        if by_calls and by_dumps and {one.rank for one in by_calls} != {one.rank for one in by_dumps}:
            return self.nobody(f"two things point to different ranks: {by_dumps[0].why}; {by_calls[0].why}")
        if by_dumps and by_dumps[0].kind == hang.MISMATCH:
            return [self.at(one.rank, HUNG, MISMATCH, one.why, own=True) for one in by_dumps]
        return [self.at(one.rank, HUNG, STOPPED, one.why) for one in by_dumps or by_calls]

    def hung(self) -> list[RankBlame]:
        """That it hung, where nothing says by whom."""
        return self.nobody("; ".join(one.text for one in self.said.stalls)) if self.said.stalls else []

    def raised(self) -> list[RankBlame]:
        """What a rank raised of its own: hardware, or the earliest."""
        own = self.words(*RAISED)
        killed = [one for one in self.dead if one.rank is not None and (one.root or one.word == CRASHED)]
        hard = [one for one in own if one.word == HARDWARE]
        first = own[0] if own and own[0].at else hard[0] if hard else own[0] if own else None
        if first is None or (killed and first.word != HARDWARE and killed[0].rank != first.rank):
            # torchrun saw that one end before.
            return []
        if first.word == HARDWARE:
            return self._hardware(first, hard)
        return [self._software(first, [one for one in own if one.word == first.word])]

    def _hardware(self, first: Seen, hard: Sequence[Seen]) -> list[RankBlame]:
        places = {(one.rank, one.node if one.rank is None else "") for one in hard}
        if len(places) > MOST_ILL and not first.at:
            return self.nobody(f"{len(places)} ranks at once say: {_line(first)}")
        return [self.at(first.rank, FAILED, HARDWARE, self._first(first), node=first.node, step=first.step)]

    def _software(self, first: Seen, own: Sequence[Seen]) -> RankBlame:
        ranks = {one.rank for one in own if one.rank is not None}
        several = len({one.rank for one in own if one.rank is not None and one.at == first.at}) > 1
        rank = None if several else first.rank
        which = f"ranks {', '.join(map(str, sorted(ranks)))}: " if several else ""
        if rank is None and first.local is not None:
            which += f"local rank {first.local} of a node that is not known: "
        why = f"{which}{self._first(first)}" + (f" ({first.where})" if first.where else "")
        return self.at(rank, FAILED, SOFTWARE, why, node=first.node, step=first.step, own=True, device=first.local)

    def _first(self, first: Seen) -> str:
        failed = {one.rank for one in self.seen if one.rank is not None}
        return f"the first of {max(1, len(failed))} ranks that failed: {_line(first)}"

    def died(self) -> list[RankBlame]:
        """A node that the scheduler lost, or a rank that was killed or crashed."""
        lost = self.words(NODE)
        if lost:
            nodes = {one.node for one in lost if one.node}
            return [self._dead(lost[0]._replace(node=nodes.pop()))] if len(nodes) == 1 else self.nobody(_line(lost[0]))
        by_order = [one for one in self.words(ORDERED) if one.rank is None and one.local is None]
        if by_order:
            return self.nobody(f"it was told to end: {_line(by_order[0])}")
        dead = [one for one in self.dead if one.root] or self.dead
        places = {(one.rank, one.node) for one in dead if one.rank is not None or one.node}
        if dead and len(places) <= 1:
            known = [one for one in dead if one.rank is not None or one.node]
            alike = self._alike(dead[0])
            if alike:
                node = alike.pop() if len(alike) == 1 else ""
                return [self._dead(dead[0]._replace(rank=None, local=None, node=node))]
            return [self._dead((known or dead)[0]._replace(memory=any(one.memory for one in dead)))]
        nodes = {node for _, node in places}
        ranks = [one for one in dead if one.rank is not None]
        if all(one.memory for one in dead) and len(ranks) == len(dead) <= named.MOST and len(nodes) == 1:
            return [self._dead(one) for one in dead]
        if dead and len(nodes) == 1 and "" not in nodes:
            return [self._dead(dead[0]._replace(rank=None))]
        return self.nobody(f"{len(places)} ranks were killed or crashed: {_line(dead[0])}") if dead else self._ended()

    def _dead(self, one: Seen) -> RankBlame:
        return self.at(one.rank, VANISHED, DIED, _line(one), node=one.node, own=one.memory, device=one.local)

    def _alike(self, root: Seen) -> set[str]:
        """The nodes of ranks that ended alike in the same second: which torchrun saw first says nothing."""
        same = [one for one in self.seen if one.at and one.at == root.at and one.word == root.word]
        return {one.node for one in same} if len({one.rank for one in same}) > 1 else set()

    def _ended(self) -> list[RankBlame]:
        """The only rank that ended by itself, where nothing says that it missed another."""
        ended = [one for one in self.words(ENDED, ABORTED) if one.rank is not None]
        dead = {one.rank for one in self.words(KILLED, CRASHED)} - {None}
        if len({one.rank for one in ended} | dead) == 1 and not self.words(*OTHERS):
            kind, cause = (VANISHED, DIED) if ended[0].word == ABORTED else (FAILED, SOFTWARE)
            return [self.at(ended[0].rank, kind, cause, _line(ended[0]), node=ended[0].node, own=True)]
        nodes = {one.node for one in ended}
        if ended and len(nodes) == 1 and self._alike(ended[0]):
            why = f"several ranks ended alike: {_line(ended[0])}"
            return [self.at(None, UNKNOWN, NOT_KNOWN, why, node=nodes.pop(), own=True)]
        return []

    def missed(self) -> list[RankBlame]:
        """Ranks that a library names as those the others wait for."""
        said = self.words(named.MISSING) or self.words(named.SLOW)
        missing = {one.rank: one for one in said if one.rank is not None}
        if said and (len(missing) > named.MOST or len(missing) in (0, self.world)):
            return self.nobody(_line(said[0]))
        how = {named.MISSING: (HUNG, STOPPED), named.SLOW: (SLOW, SLOW)}
        return [self.at(rank, *how[one.word], _line(one)) for rank, one in sorted(missing.items())]

    def waited(self) -> list[RankBlame]:
        """A rank that others wait for, or that is gone without a word while they lost their connection to it."""
        complaints = self.words(LATE, GONE)
        if not complaints:
            return (self._hung() if self.dumps and not self.asked else []) or self._by_ras()
        gone, late = self._vanished(), [] if self.asked else self._hung()
        named = [one for one in late if one.rank is not None]
        first, second = (named, gone) if complaints[0].word == LATE else (gone, named)
        return first or second or self._by_ras() or late

    def _hung(self) -> list[RankBlame]:
        """By the flight recorder; without a dump by what the watchdogs say of the same."""
        found = []
        for one in hang.suspects(self.dumps, self.world) if self.dumps else hang.suspects(self._watched(), 0):
            cause = MISMATCH if one.kind == hang.MISMATCH else STOPPED if one.rank is not None else NOT_KNOWN
            kind = HUNG if one.rank is not None or cause == MISMATCH else UNKNOWN
            found.append(self.at(one.rank, kind, cause, one.why, own=cause != STOPPED))
        return found

    def _by_ras(self) -> list[RankBlame]:
        """What the living job's RAS says; each node may have asked it."""
        found = {one.text: one for one in self.said.lags}.values()
        certain = [one for one in found if one.word != ras.OPEN]
        if len({(one.rank, one.node, one.device) for one in certain}) > 1 or (found and not certain):
            return self.nobody("; ".join(one.text for one in found))
        for one in certain[:1]:
            kind, cause = LAGS[one.word]
            found_at = self.at(one.rank, kind, cause, one.text, own=cause == MISMATCH, device=one.device)
            return [replace(found_at, node=found_at.node or one.node)]
        return []

    def _watched(self) -> list[Dump]:
        """The watchdogs' lines as dumps: what each rank waits in, and the newest number that it has called."""
        calls: dict[int, list[CollectiveCall]] = {}
        for group in {one.group for one in self.said.waiting}:
            of = {one for one in self.said.waiting if one.group == group}
            if len({one.place for one in of}) == len({one.rank for one in of}):
                for one in of:
                    states = ((one.work - 1, DONE), (one.work, "started"), (one.enqueued, "scheduled"))
                    made = (CollectiveCall(group, number, "a collective", state) for number, state in states)
                    calls.setdefault(one.rank, []).extend(made)
        return [Dump(rank, of) for rank, of in calls.items()]

    def _vanished(self) -> list[RankBlame]:
        """Of a run that wrote journals; a log that some rank is not in says nothing of it."""
        world = max((rank.world for rank in self.ranks.values() if not rank.injected), default=0)
        ended = {rank for rank, one in self.ranks.items() if one.failure or one.ended}
        why = "ended without a word (killed, out of memory, or node lost); the others lost their connection to it"
        return [self.at(rank, VANISHED, DIED, why) for rank in range(world) if rank not in ended]

    def rest(self) -> list[RankBlame]:
        """The way between two ranks; else what broke, and that nobody is named for it."""
        for word, kind, cause in ((words.MISMATCH, HUNG, MISMATCH), (NETWORK, PATH, PATH)):
            if found := self.words(word):
                return [self.at(None, kind, cause, _line(found[0]), own=True)]
        complaints = self.words(LATE, GONE, ABORTED, ENDED, ORDERED)
        if not complaints:
            return []
        if complaints[0].word in (LATE, GONE):
            rank = complaints[0].rank
            who = "the first that complained" + (f" was rank {rank}" if rank is not None else "")
            return self.nobody(f"{who}: {_line(complaints[0])}; the dumps or logs of all ranks would tell")
        return self.nobody(f"{_line(complaints[0])}; the ranks' own output (torchrun --log-dir) would tell")


def _line(one: Seen) -> str:
    lines = one.text.strip().splitlines() or ["no text"]
    return lines[0][:MESSAGE_CHARS]


def _slow(case: _Case) -> list[RankBlame]:
    steps = {rank: one.steps for rank, one in case.ranks.items()}
    found = [case.at(one.rank, SLOW, SLOW, one.why) for one in slow.stragglers(steps)]
    found += _slow_nodes(case, {one.node for one in found})
    waited = slow.bottleneck(steps)
    if waited and not (found and waited[0] == slow.NETWORK):
        # Beside a straggler the others wait for it, and the network is not to blame.
        found.append(case.at(None, waited[0], SLOW, waited[1]))
    return found


def _slow_nodes(case: _Case, named: set[str]) -> list[RankBlame]:
    """By the journals' own work, else by Inspector; without nodes of which a rank is named already."""
    own = {
        rank: {one["step"]: float(one["local_s"]) for one in of.steps if isinstance(one.get("local_s"), (int, float))}
        for rank, of in case.ranks.items()
    }
    late, hosts = case.said.late, {rank: of.host for rank, of in case.ranks.items() if of.host}
    found = slow.slow_nodes(slow.deviations(own), hosts) or slow.slow_nodes(
        slow.deviations(late.late, late.lengths), late.hosts
    )
    return [case.at(None, SLOW, SLOW, one.why, node=one.node) for one in found if one.node not in named]
