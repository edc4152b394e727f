"""Who is to blame for a run that ended badly or is slow: one answer from journals and flight recorder. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..record.reasons import RANK
from . import hang, slow
from .flight import Dump
from .journals import Failure, Rank

MESSAGE_CHARS = 300
MOST_ILL = 2
"""Nodes. More at once are a switch, a file system or a program: their quarantine would cost the cluster. Own choice."""
FAILED, VANISHED, HUNG, SLOW = "failed", "vanished", "hung", "slow"
GONE = re.compile(
    r"connection (?:closed|reset|refused)|broken pipe|remote (?:process|peer)|ncclRemoteError|DistBackendError"
    r"|socket(?:Start|Progress|Poll)|SignalException|peer closed",
    re.I,
)
LATE = re.compile(r"timed? ?out|watchdog", re.I)
"""GONE and LATE: words of an error that says so of another rank. Source: messages of PyTorch 2.9's ProcessGroupGloo,
ProcessGroupNCCL and TCPStore."""


@dataclass(frozen=True)
class RankBlame:
    """One rank to blame (None: no single one). node: as the job named its host. step: where it shows, if known.

    own: the program did it, by all that is seen, and not the node.
    """

    kind: str
    rank: int | None
    node: str
    device: int | None
    why: str
    step: int | None = None
    own: bool = False


def blames(ranks: Mapping[int, Rank], dumps: Sequence[Dump]) -> list[RankBlame]:
    """The first cause that there is evidence for; what follows from it is left out.

    In this order: a rank that raised something of its own; ranks that others wait for; a rank that is gone without a
    word; the first that complained. A run that nothing ended is looked at for slow ranks.
    """
    failures = sorted((rank.failure for rank in ranks.values() if rank.failure), key=lambda failure: failure.at)
    own = [failure for failure in failures if not (GONE.search(failure.text) or LATE.search(failure.text))]
    if own:
        return [_failed(own[0], ranks)]
    if failures:
        gone, late = _vanished(ranks), _hung(ranks, dumps)
        first, second = (late, gone) if LATE.search(failures[0].text) else (gone, late)
        return first or second or [_failed(failures[0], ranks)]
    return _slow(ranks)


def suspects(found: Sequence[RankBlame], source: str) -> dict[str, list[dict[str, Any]]]:
    """Findings of nodes that may be ill, for their quarantine; where many are to blame at once it is none of them.

    source: where the evidence is.
    """
    ill: dict[str, list[dict[str, Any]]] = {}
    for one in found:
        if one.node and not one.own:
            place = f"rank {one.rank}" + (f" at step {one.step}" if one.step is not None else "")
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


def _at(
    ranks: Mapping[int, Rank], rank: int, kind: str, why: str, step: int | None = None, own: bool = False
) -> RankBlame:
    known = ranks.get(rank, Rank(rank))
    return RankBlame(kind, rank, known.host, known.device, why, step, own)


def _failed(failure: Failure, ranks: Mapping[int, Rank]) -> RankBlame:
    lines = failure.text.strip().splitlines() or ["no text"]
    others = sum(rank.failure is not None for rank in ranks.values()) - 1
    why = f"the first of {others + 1} ranks that failed: {lines[0][:300]}"
    return _at(ranks, failure.rank, FAILED, why, failure.step, own=True)


def _hung(ranks: Mapping[int, Rank], dumps: Sequence[Dump]) -> list[RankBlame]:
    world = max((rank.world for rank in ranks.values()), default=0)
    found = hang.suspects(dumps, world)
    return [_at(ranks, one.rank, HUNG, one.why, own=one.kind == hang.MISMATCH) for one in found]


def _vanished(ranks: Mapping[int, Rank]) -> list[RankBlame]:
    world = max((rank.world for rank in ranks.values()), default=0)
    gone = [rank for rank in range(world) if rank not in ranks or not (ranks[rank].failure or ranks[rank].ended)]
    why = "ended without a word (killed, out of memory, or its node is lost); the others lost their connection to it"
    return [_at(ranks, rank, VANISHED, why) for rank in gone]


def _slow(ranks: Mapping[int, Rank]) -> list[RankBlame]:
    steps = {rank: one.steps for rank, one in ranks.items()}
    found = [_at(ranks, one.rank, SLOW, one.why) for one in slow.stragglers(steps)]
    waited = slow.bottleneck(steps)
    if waited and not (found and waited[0] == slow.NETWORK):
        # Beside a straggler the others wait for it, and the network is not to blame.
        found.append(RankBlame(waited[0], None, "", None, waited[1]))
    return found
