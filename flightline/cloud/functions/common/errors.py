"""Two ways to fail: an event that will never work, and one that may work later."""

from __future__ import annotations


class InvalidEvent(ValueError):
    """The event cannot be used, however often it comes: it is kept, counted and not tried again."""


class TryAgain(RuntimeError):
    """Something that may mend itself (throttling, another invocation at work): the source shall deliver again."""


class ConfigMissing(RuntimeError):
    """The function's environment lacks a variable; the text names it."""
