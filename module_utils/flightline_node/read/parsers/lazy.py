"""Patterns that are compiled when first used: most nodes need few of them, and each costs a node CPU time."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Iterator, List, Match, NamedTuple, Optional


@lru_cache(maxsize=None)
def _compiled(pattern: str, flags: int) -> re.Pattern[str]:
    return re.compile(pattern, flags)


class Lazy(NamedTuple):
    """A pattern of re, not compiled yet."""

    pattern: str
    flags: int = 0

    def match(self, text: str, at: int = 0) -> Optional[Match[str]]:
        """As re.Pattern.match."""
        return _compiled(self.pattern, self.flags).match(text, at)

    def search(self, text: str, at: int = 0, end: int = 1 << 31) -> Optional[Match[str]]:
        """As re.Pattern.search."""
        return _compiled(self.pattern, self.flags).search(text, at, end)

    def fullmatch(self, text: str) -> Optional[Match[str]]:
        """As re.Pattern.fullmatch."""
        return _compiled(self.pattern, self.flags).fullmatch(text)

    def findall(self, text: str) -> List[str]:
        """As re.Pattern.findall, of a pattern with at most one group."""
        return _compiled(self.pattern, self.flags).findall(text)

    def finditer(self, text: str, at: int, end: int) -> Iterator[Match[str]]:
        """As re.Pattern.finditer."""
        return _compiled(self.pattern, self.flags).finditer(text, at, end)

    def sub(self, repl: str, text: str) -> str:
        """As re.Pattern.sub."""
        return _compiled(self.pattern, self.flags).sub(repl, text)
