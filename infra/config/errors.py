"""Mistakes in a stack's configuration."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Mistake:
    """One mistake: the key, what it says and what was wanted."""

    key: str
    value: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.key}: saw {self.value}; wanted {self.wanted}"


class ConfigError(Exception):
    """Every mistake of a stack's configuration, in the order of the keys."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        lines = "\n".join(f"  {mistake}" for mistake in self.mistakes)
        count = len(self.mistakes)
        super().__init__(
            f"{count} mistake{'s' if count != 1 else ''} in the stack's configuration; nothing was created.\n{lines}"
        )
