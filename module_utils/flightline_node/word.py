"""Words with a closed list: enums that are text."""

from __future__ import annotations

import enum


class Word(str, enum.Enum):
    """A string enum that prints as its value on every supported Python (3.8 to 3.13 differ)."""

    # Enum's own hash is a Python function: a fleet report looks millions of statuses up.
    __hash__ = str.__hash__

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(str(self.value), spec)
