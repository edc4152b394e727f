"""How old each node's proof is: when an active level last said go of it, by what the node itself measured.

A no-go of any level ends a proof: what is found at level quick may be of what the deeper level had passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from flightline_node.judge.checks import CHECKS
from flightline_node.judge.skips import NOT_ASKED
from flightline_node.model import LEVELS, Status, Verdict

from ..store.sqlite import TOGETHER, Look, Record, SqliteStore, now_stamp
from .result import Report

ACTIVE = LEVELS[1:]
DAYS = 31.0
"""How far back a proof is looked for; an older one is none."""


@dataclass
class NodeProof:
    """Level -> when a run began that proved the node, and when one last tried to: ISO 8601; absent where none did.

    A go at a deeper level proves those above it.
    """

    proven: dict[str, str] = field(default_factory=dict)
    tried: dict[str, str] = field(default_factory=dict)


Proofs = Mapping[str, NodeProof]


def proofs(store: SqliteStore, until: str, days: float = DAYS) -> dict[str, NodeProof]:
    """Every node that was looked at in the days before a moment, and its proofs."""
    since = (datetime.fromisoformat(until) - timedelta(days=days)).isoformat()
    looks = (one for one in store.looks(since) if one.started_at <= until and one.host != TOGETHER)

    whole: dict[str, bool] = {}

    def counts(one: Look) -> bool:
        # What a run leaves out it leaves out everywhere, and to unpack every node's record takes a large fleet long.
        if one.run_id not in whole:
            whole[one.run_id] = is_whole(store.record(one.run_id, one.host), one.level)
        return whole[one.run_id]

    return of_looks(looks, counts)


def ages(store: SqliteStore, report: Report) -> dict[str, dict[str, float | None]]:
    """Host -> active level -> hours, None for no proof, for a report: as of its run's end."""
    until = report.run.finished_at or now_stamp()
    known = proofs(store, until)
    hosts = (row.host for row in report.rows)
    return {host: {level: age_h(known.get(host, NodeProof()), level, until) for level in ACTIVE} for host in hosts}


def of_looks(looks: Iterable[Look], counts: Callable[[Look], bool]) -> dict[str, NodeProof]:
    """Proofs from looks, newest first. counts: was so much of the level asked that a go of it is a proof? Pure."""
    found: dict[str, NodeProof] = {}
    instance: dict[str, str] = {}
    over: set[str] = set()
    for one in looks:
        proof = found.setdefault(one.host, NodeProof())
        # Another machine of that name has its own proof to give.
        if one.instance_id and instance.setdefault(one.host, one.instance_id) != one.instance_id:
            over.add(one.host)
        if one.host in over:
            continue
        proof.tried.setdefault(one.level, one.started_at)
        if one.verdict != Verdict.GO:
            # Of a host that gave no answer nothing was found; its proof grows old and no more.
            over |= {one.host} if one.status != Status.UNREACHABLE else set()
        elif one.level in ACTIVE and one.level not in proof.proven and counts(one):
            for level in ACTIVE[: ACTIVE.index(one.level) + 1]:
                proof.proven.setdefault(level, one.started_at)
    return found


def is_whole(record: Record | None, level: str) -> bool:
    """Were most of the active checks to run? `--check xid --level deep` is no proof; a site may leave out a few."""
    own = {check.id for check in CHECKS.values() if check.level in ACTIVE[: ACTIVE.index(level) + 1]}
    findings = record["findings"] if record else ()
    asked = {one["check"] for one in findings if one.get("reason") != NOT_ASKED.id}
    return 2 * len(own & asked) > len(own)


def age_h(proof: NodeProof, level: str, now: str) -> float | None:
    """Hours since a level proved the node; None where none did."""
    at = proof.proven.get(level)
    return round(hours(at, now), 3) if at else None


def hours(since: str, until: str) -> float:
    """Hours between two stamps."""
    return (datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds() / 3600
