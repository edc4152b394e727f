"""What a channel is: the settings that switch it on, and how it sends a digest.

Nothing here knows a channel by its name, nor where settings come from: the control side has them from the inventory,
the Lambda functions from their environment.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from .digest import Digest
from .secret import resolve

TEXT, SECRET, HOSTS, PEM, FILE = "text", "secret", "hosts", "pem", "file"
"""Kinds of settings. SECRET: where one is kept, never the secret. HOSTS: host names with spaces between them. PEM,
FILE: a path."""
PLACES = "env:NAME, file:PATH or secretsmanager:NAME"
KEPT_S = 300.0
"""How long a secret is used before it is read again."""


class DeliveryError(RuntimeError):
    """A digest was not taken. later: it may be when tried again (rate limit, server error, network).

    Its text never has a secret in it.
    """

    def __init__(self, message: str, later: bool) -> None:
        super().__init__(message)
        self.later = later


@dataclass(frozen=True)
class ChannelSetting:
    """One setting. switches: its value switches the channel on. needs: another setting that must come with it.

    pattern: what a value must match as a whole, wanted: the same in words.
    """

    name: str
    what: str
    kind: str = TEXT
    switches: bool = False
    needs: str = ""
    pattern: str = ""
    wanted: str = ""
    default: str = ""


class Send(Protocol):
    """How a channel sends a digest; returns the id of the thread that it is in, '' where there are none.

    Raises DeliveryError, and what AWS raises.
    """

    def __call__(self, digest: Digest, means: Means) -> str:
        """Send it."""


@dataclass(frozen=True)
class Channel:
    """One way to tell people. title: as people call it. lacking: what is wrong with its settings beyond their kinds."""

    title: str
    settings: tuple[ChannelSetting, ...]
    send: Send
    lacking: Callable[[Mapping[str, str]], Iterator[str]] = lambda _: iter(())

    def place(self, given: Mapping[str, str]) -> str:
        """The value that switches it on; '' where none does."""
        return next((given[one.name] for one in self.settings if one.switches and given.get(one.name)), "")


@dataclass
class Means:
    """What a channel sends with. given: the settings' values. client: an AWS service's name -> its client.

    manager: name or ARN -> SecretString. patience_s: how long all waits of one digest may take together.
    thread: where the digest goes on, '' for a new one.
    """

    given: Mapping[str, str]
    client: Callable[[str], Any]
    manager: Callable[[str], str]
    wait_limit_s: float = math.inf
    thread: str = ""
    _left_s: float = field(default=math.inf, repr=False)
    _kept: dict[str, tuple[float, str]] = field(default_factory=dict, repr=False)

    def begin(self, thread: str) -> None:
        """A digest is about to be sent, into a thread where one is named."""
        self.thread, self._left_s = thread, self.wait_limit_s

    def sleep(self, seconds: float) -> None:
        """Wait as long as a channel asks to. Raises DeliveryError where that is too long."""
        self._left_s -= seconds
        if self._left_s < 0:
            raise DeliveryError("it asks to wait too long", later=True)
        time.sleep(seconds)

    def secret(self, name: str) -> str:
        """The secret that a setting names. Raises SecretError."""
        read_at, value = self._kept.get(name, (0.0, ""))
        if not value or time.monotonic() - read_at > KEPT_S:
            value = resolve(self.given[name], self.manager).reveal()
            self._kept[name] = (time.monotonic(), value)
        return value

    def renewed(self) -> bool:
        """Read the secrets again: was one replaced?"""
        before, self._kept = self._kept, {}
        return any(self.secret(name) != value for name, (_, value) in before.items())
