"""The one voice: a digest through every channel that is switched on, once each.

A message goes out before it is remembered: dying in between repeats at most that one, by the same key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from . import channels
from .channel import Channel, DeliveryError, Means
from .digest import Digest
from .secret import SecretError


class Memory(Protocol):
    """What was told already, of one digest, by the channel's name. It survives the teller."""

    def begin(self, channel: str) -> bool:
        """May it be sent there? False: it was. Raises DeliveryError where another is at it."""

    def sent(self, channel: str, thread: str) -> None:
        """It was, in a thread where there is one."""

    def not_sent(self, channel: str) -> None:
        """It was not."""


@dataclass
class TellingOutcome:
    """What came of it, by channel: told, refused for good and why, waiting and why."""

    delivered: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    waits: dict[str, str] = field(default_factory=dict)


@dataclass
class Destination:
    """A channel that is switched on, with what it sends with."""

    name: str
    channel: Channel
    means: Means

    def send(self, digest: Digest) -> str:
        """Send; where the channel refuses and its secret was replaced meanwhile, once more with the new one."""
        try:
            return self.channel.send(digest, self.means)
        except DeliveryError as error:
            if error.later or not self.means.renewed():
                raise
        return self.channel.send(digest, self.means)


@dataclass
class Voice:
    """explain: an error, and where -> what to say of it; '' for what is a bug and no answer of AWS."""

    destinations: list[Destination]
    explain: Callable[[BaseException, str], str] = lambda *_: ""

    def tell(self, digest: Digest, memory: Memory, thread: str = "") -> TellingOutcome:
        """Send a digest. One channel that fails costs no other its message."""
        outcome = TellingOutcome()
        for one in self.destinations:
            one.means.begin(thread)
            try:
                self._once(one, digest, memory, outcome)
            except DeliveryError as error:
                outcome.waits[one.name] = str(error)
        return outcome

    def _once(self, one: Destination, digest: Digest, memory: Memory, outcome: TellingOutcome) -> None:
        if not memory.begin(one.name):
            return
        in_thread = ""
        try:
            in_thread = self._explained(one, digest)
            outcome.delivered.append(one.name)
        except DeliveryError as error:
            if error.later:
                memory.not_sent(one.name)
                raise
            # Asked again it would be refused again, and would hold up all that comes after it.
            outcome.refused[one.name] = str(error)
        except BaseException:
            memory.not_sent(one.name)
            raise
        memory.sent(one.name, in_thread)

    def _explained(self, one: Destination, digest: Digest) -> str:
        try:
            return one.send(digest)
        except DeliveryError:
            raise
        except SecretError as error:
            raise DeliveryError(str(error), later=True) from None
        except Exception as error:
            said = self.explain(error, one.channel.place(one.means.given))
            if not said:
                raise
            raise DeliveryError(said, later=True) from error


def destinations(given: Mapping[str, str], means: Callable[[Mapping[str, str]], Means]) -> list[Destination]:
    """Every channel that the settings switch on, in the order of their names."""
    return [
        Destination(name, channel, means(_of(channel, given)))
        for name, channel in channels.CHANNELS.items()
        if channel.place(given)
    ]


def switches() -> Iterable[str]:
    """Every setting that switches a channel on."""
    return [one.name for channel in channels.CHANNELS.values() for one in channel.settings if one.switches]


def _of(channel: Channel, given: Mapping[str, str]) -> dict[str, str]:
    return {one.name: given.get(one.name) or one.default for one in channel.settings}
