"""What people are told of an incident: all its messages have one subject, by which mail makes one thread of them.

What was told is kept in the incident, by channel, with the thread that a bot writes into: a remediator that was killed
in between tells it when it is started again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...tell.digest import Digest
from ...tell.voice import Voice
from .incident import PROPOSED, Incident, Moment
from .machine import EventKind

TOLD = frozenset(
    {
        EventKind.QUARANTINED,
        EventKind.REPAIRED,
        EventKind.FAILED,
        EventKind.VERIFIED,
        EventKind.RETURNED,
        EventKind.HELD,
    }
)


@dataclass
class Notices:
    """Tells of incidents and breakers. What cannot be sent is said, costs no step and is tried again."""

    voice: Voice
    scope: str
    say: Callable[[str], None]

    def incident(self, one: Incident) -> Incident:
        """Tell where an incident stands, once by each channel; the incident as people know it now."""
        event = next((event for event in reversed(one.events) if event.what in TOLD or event.about == PROPOSED), None)
        if event is None or not (one.told or one.is_open):
            return one
        known = Known({**one.told}, f"{event.at} {event.what}", one.thread)
        self._tell(digest(one, event, self.scope), one.id, known)
        return replace(one, told=known.told, thread=known.thread) if known.told != one.told else one

    def stop(self, group: str, why: str) -> None:
        """Page: a breaker fell."""
        title, about = f"Flightline STOP {self.scope}: {group}", f"breaker-{group}"
        self._tell(Digest(title, facts=(why,), scope=self.scope, about=about), about, Known({}, why))

    def _tell(self, made: Digest, about: str, known: Known) -> None:
        outcome = self.voice.tell(made, known, known.thread)
        for why in (*outcome.waits.values(), *outcome.refused.values()):
            self.say(f"warning: {about}: nobody was told: {why}")


@dataclass
class Known:
    """What people were told of an incident: by each channel, the last moment."""

    told: dict[str, str]
    moment: str
    thread: str = ""

    def begin(self, channel: str) -> bool:
        """Was it another moment?"""
        return self.told.get(channel) != self.moment

    def sent(self, channel: str, thread: str) -> None:
        """People know it."""
        self.told[channel], self.thread = self.moment, thread or self.thread

    def not_sent(self, channel: str) -> None:
        """People know the earlier one still."""


def digest(one: Incident, event: Moment, scope: str) -> Digest:
    """The message of one moment; the title is the incident's, whatever happened."""
    jobs = f"jobs {', '.join(event.jobs)}" if event.jobs else ""
    trouble = one.troubles[0].said if one.troubles else ""
    facts = (f"{event.what}: {event.why}", jobs, f"by {event.actor}", event.at, trouble)
    where = f"{one.host} ({one.instance_id})" if one.instance_id else one.host
    title = f"Flightline incident {scope} {where} {one.id}"
    told = tuple(fact for fact in facts if fact)
    return Digest(title, facts=told, scope=scope, about=one.id, over=not one.is_open)
