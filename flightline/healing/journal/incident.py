"""One node's trouble from detection to return: what happened, when, who decided, on what evidence. Pure.

A node has one open incident: it is drained, repaired and proven once, whatever number of troubles it has. Its
attempts are the journal of what was done to it: the intent is stored before a step that cannot be taken back, the
outcome after it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from flightline_node.model import LEVELS, Remedy
from flightline_node.names import check_id

from .machine import CLOSING, OPEN_OUT, EventKind, NodeState, after
from .stamps import seconds

MOST_LINES = 8
MOST_EVENTS = 400
MOST_IN_VAIN = 3
"""Times that a step which never began is tried before the ladder is climbed."""
NOT_YET, DONE, FAILED, UNKNOWN, NOT_DONE, REFUSED = "", "done", "failed", "unknown", "not done", "refused"
"""Outcomes of an attempt. unknown: it may have been done, so it is not done again. not done: that is proven. refused:
the platform does not do it, here or on another node like it."""

RELEASE = "RELEASE"
REQUEUE = "REQUEUE"
"""Steps beside the ladder that cannot be taken back: a held instance given back, jobs put back into the queue."""

BREAKER_RESET = "breaker_reset"
"""What a note is about: a person looked at the node and reset its group's breaker."""
PROPOSED, APPROVED = "proposed", "approved"
"""What a note is about: people were told of a step before it is taken; a person let it be taken."""
SIGNALLED = "signalled"
"""What a note is about: the jobs were told that they are requeued soon."""
EVERY = "*"
"""The group of a stop that a person made: all of them."""
CLAIMED, LOST = "claimed", "lost"
"""What a detection is about: a claim in the scheduler, of which no more is known here; a host that it lost."""


@dataclass(frozen=True)
class NodeTrouble:
    """A root finding, as far as healing needs it. key: the check and the GPU serial where there is one.

    reason: the id of the finding's.
    """

    key: str
    check: str
    remedy: str
    message: str
    device: str = ""
    serial: str = ""
    status: str = "FAIL"
    evidence: tuple[str, ...] = ()
    reason: str = ""

    @property
    def said(self) -> str:
        """'row_remap: GPU 3: a row remapping waits for a reset'."""
        named = not self.device or self.device in self.message
        return f"{self.check}{'' if named else f' {self.device}'}: {self.message}"

    def today(self) -> NodeTrouble:
        """The same under the id that its check has today."""
        check = check_id(self.check)
        return replace(self, check=check, key=check + self.key.removeprefix(self.check))


@dataclass(frozen=True)
class Moment:
    """A moment. actor: who or what decided. jobs: what ran there. at: ISO 8601, UTC. run: which saw it.

    about: what a note is about, an id; why is for people. step: of the ladder, where the note is about one.
    """

    at: str
    what: str
    actor: str
    why: str = ""
    evidence: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    run: str = ""
    about: str = ""
    step: str = ""


@dataclass(frozen=True)
class Attempt:
    """A step that cannot be taken back. token: the lease it was meant under. before: what shows whether it came."""

    number: int
    step: str
    at: str
    token: int
    outcome: str = NOT_YET
    ended_at: str = ""
    detail: str = ""
    before: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Proof:
    """A preflight that found the node good. at: when it began. serials: of its GPUs then.

    judged_at: when it looked, by the node's own clock, which is that of the node's marker.
    """

    run: str
    level: str
    at: str
    serials: tuple[str, ...] = ()
    judged_at: str = ""


@dataclass(frozen=True)
class Incident:
    """A node's way through healing. version: counts the times it was stored. thread: Slack's, where people are told.

    told: by each channel, the last moment that people were told of. known_at: when healing knew what opened it.
    """

    id: str
    host: str
    instance_id: str
    group: str
    level: str
    state: NodeState
    opened_at: str
    troubles: tuple[NodeTrouble, ...] = ()
    events: tuple[Moment, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    proof: Proof | None = None
    swap: Mapping[str, Any] = field(default_factory=dict)
    thread: str = ""
    told: Mapping[str, str] = field(default_factory=dict)
    closed_at: str = ""
    version: int = 0
    known_at: str = ""

    @property
    def is_open(self) -> bool:
        """Is it not over?"""
        return not self.closed_at

    @property
    def is_out(self) -> bool:
        """Has healing taken the node out of service?"""
        return self.is_open and self.state in OPEN_OUT

    @property
    def keys(self) -> frozenset[str]:
        """What makes a trouble the same in another incident."""
        return frozenset(trouble.key for trouble in self.troubles)

    @property
    def pending(self) -> Attempt | None:
        """The attempt whose outcome is not stored."""
        return next((attempt for attempt in self.attempts if attempt.outcome == NOT_YET), None)

    @property
    def serials(self) -> frozenset[str]:
        """Serials of the GPUs in trouble."""
        return frozenset(trouble.serial for trouble in self.troubles if trouble.serial)

    def at(self, what: EventKind) -> str:
        """When something happened first; '' when it has not."""
        return next((event.at for event in self.events if event.what == what), "")

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the store; from_dict reads it."""
        return {**asdict(self), "state": str(self.state)}


def from_dict(raw: Mapping[str, Any]) -> Incident:
    """An incident as it was stored; keys of a newer version are left out."""

    def made(kind: Any, data: Mapping[str, Any]) -> Any:
        tuples = {"evidence", "jobs", "serials"}
        known = kind.__dataclass_fields__
        return kind(**{key: tuple(value) if key in tuples else value for key, value in data.items() if key in known})

    parts: dict[str, Any] = {key: value for key, value in raw.items() if key in Incident.__dataclass_fields__}
    for name, kind in (("troubles", NodeTrouble), ("events", Moment), ("attempts", Attempt)):
        parts[name] = tuple(made(kind, item) for item in raw.get(name) or ())
    parts["events"] = tuple(_read(event) for event in parts["events"])
    parts["troubles"] = tuple(one.today() for one in parts["troubles"])
    parts["proof"] = made(Proof, raw["proof"]) if raw.get("proof") else None
    parts["state"] = NodeState(raw["state"])
    return Incident(**parts)


def _read(event: Moment) -> Moment:
    """An event as it is written today: those of 0.1 had no ids, and their sentences are the ones of that version."""
    run = event.actor[4:] if event.actor.startswith("run ") else event.run
    about = BREAKER_RESET if event.what == EventKind.NOTED and event.why.startswith("breaker reset") else event.about
    return replace(event, run=run, about=about)


def opened(
    host: str, instance_id: str, group: str, level: str, troubles: Sequence[NodeTrouble], first: Moment
) -> Incident:
    """A new incident; its id follows from host and time, so that two who open it open the same one."""
    short = hashlib.sha256(f"{host}|{instance_id}|{first.at}".encode()).hexdigest()[:6]
    stamp = "".join(ch for ch in first.at[:19] if ch.isdigit() or ch == "T")
    made = Incident(
        f"{stamp}Z-{short}", host, instance_id, group, level, NodeState.IN_SERVICE, first.at, tuple(troubles)
    )
    return advance(made, first)


def advance(incident: Incident, event: Moment) -> Incident:
    """The incident after an event. Raises UnlawfulError for what cannot follow."""
    what = EventKind(event.what)
    state = after(incident.state, what)
    event = replace(event, evidence=tuple(event.evidence[:MOST_LINES]))
    # The first events tell when it began and the last ones where it stands; a loop in between shall not fill the store.
    events = (*incident.events, event)
    kept = events if len(events) <= MOST_EVENTS else (*events[:20], *events[-(MOST_EVENTS - 20) :])
    closed = event.at if what in CLOSING else incident.closed_at
    proof = None if what in (EventKind.FAILED, EventKind.DETECTED, EventKind.RETRIED) else incident.proof
    return replace(incident, state=state, events=kept, closed_at=closed, proof=proof)


def intended(incident: Incident, step: str, at: str, token: int, before: Mapping[str, Any]) -> Incident:
    """The incident with the intent of a step. Raises ValueError while another's outcome is open."""
    if incident.pending:
        raise ValueError(f"{incident.id}: {incident.pending.step} is not settled, so nothing else may begin")
    attempt = Attempt(len(incident.attempts) + 1, step, at, token, before=dict(before))
    return replace(incident, attempts=(*incident.attempts, attempt))


def settled(incident: Incident, outcome: str, at: str, detail: str = "") -> Incident:
    """The incident with the outcome of its pending attempt."""
    done = tuple(
        one if one.outcome != NOT_YET else replace(one, outcome=outcome, ended_at=at, detail=detail)
        for one in incident.attempts
    )
    return replace(incident, attempts=done)


def tried(incident: Incident, past: Iterable[Incident], now_s: float, window_s: float) -> list[Remedy]:
    """Steps taken for one of the incident's troubles, here or in other incidents within the window.

    What was proven not to have been done does not count.
    """
    steps = {str(remedy): remedy for remedy in Remedy}
    related = [one for one in past if one.id != incident.id and one.keys & incident.keys]
    recent = [
        attempt
        for one in related
        for attempt in one.attempts
        if now_s - seconds(attempt.at) <= window_s and attempt.outcome != NOT_YET
    ]
    own = [attempt for attempt in incident.attempts if attempt.outcome != NOT_YET]
    in_vain = Counter(one.step for one in own if one.outcome == NOT_DONE)
    return [
        steps[one.step]
        for one in (*recent, *own)
        if one.step in steps and (one.outcome != NOT_DONE or in_vain[one.step] >= MOST_IN_VAIN)
    ]


def refused_of(incident: Incident, known: Iterable[Incident]) -> set[Remedy]:
    """Steps that nodes like this one refused: of its group, with the driver and image that its own last attempt saw."""
    own = _kind(next((a for a in reversed(incident.attempts) if _kind(a)), None))
    return {
        Remedy(attempt.step)
        for one in known
        if one.group == incident.group
        for attempt in one.attempts
        if attempt.outcome == REFUSED and not (own and _kind(attempt) and own != _kind(attempt))
    }


def _kind(attempt: Attempt | None) -> Any:
    return attempt and attempt.before.get("software")


def deeper(one: str, other: str) -> str:
    """The level that measures more; an unknown one is the deepest."""
    return max(one, other, key=lambda level: LEVELS.index(level) if level in LEVELS else len(LEVELS))


def attempts_of(incidents: Iterable[Incident]) -> list[tuple[str, str]]:
    """Every step that may have been done, and when it was begun."""
    return [(one.step, one.at) for seen in incidents for one in seen.attempts if one.outcome != NOT_DONE]


def answer(one: Incident, step: str) -> tuple[str, str]:
    """(APPROVED or PROPOSED or '', when) of a step since the last one was begun."""
    since = 0
    for number, event in enumerate(one.events):
        since = number if event.what == EventKind.STARTED else since
    known = ("", "")
    for event in one.events[since:]:
        if event.step == step and event.about in (PROPOSED, APPROVED):
            known = (event.about, event.at if event.about == APPROVED or known[0] != PROPOSED else known[1])
    return known
