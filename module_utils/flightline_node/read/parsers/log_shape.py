"""The ledger of a log other than the kernel's: the lines that its parser did not understand.

Those in an error's shape are grouped by what they have in common; of the others there is a count.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Dict, List, Optional

from ...know.catalog.harmless_logs import is_harmless
from ...model import Facts
from . import kernel_shape
from .lazy import Lazy

FACT = "not_understood"
WORDS = tuple(word.decode() for word in kernel_shape.WORDS)
MOST_SHAPES = 200


@lru_cache(maxsize=512)
def _speaks_of_failure(text: str, own: bool = False) -> bool:
    shape = kernel_shape.speaks_of_failure if own else kernel_shape.has_shape
    return any(word in text for word in WORDS) and shape(text)


class Unread:
    """Lines that no rule took. about: of which parts an error must speak to count; None for any.

    own: the log is one tool's, so that the weak words (cannot, invalid) need no part beside them.
    """

    def __init__(self, about: Optional[Lazy] = None, own: bool = False) -> None:
        self.lines = 0
        self._about, self._own = about, own
        self._shapes: Dict[str, Facts] = {}

    def note(self, line: str, known_form: bool = False) -> bool:
        """Take a line; known_form: the tool's own form, so that it is not understood only where it speaks of failure.

        Returns whether it has an error's shape.
        """
        text = line.strip()[: kernel_shape.TEXT_CHARS]
        loud = self._is_loud(text)
        self.lines += bool(text) and (loud or not known_form)
        if loud:
            shape = kernel_shape.shape_of(text)
            if shape not in self._shapes and len(self._shapes) >= MOST_SHAPES:
                shape = next(iter(self._shapes))
            self._shapes.setdefault(shape, {"text": text, "count": 0})["count"] += 1
        return loud

    def _is_loud(self, text: str) -> bool:
        return (
            _speaks_of_failure(text, self._own)
            and (self._about is None or self._about.search(text) is not None)
            and not is_harmless(text)
        )

    def facts(self) -> Facts:
        """{not_understood{lines, unread[]{text count}}}; nothing where all was understood."""
        shapes: List[Facts] = list(self._shapes.values())
        return {FACT: {"lines": self.lines, "unread": shapes}} if self.lines else {}
