"""A sampled finding counts when two samples in a row say it: a device shows odd values while it is being reset."""

from __future__ import annotations

from typing import List, Sequence, Set

from ..model import Finding
from .verdicts import Identity, identity


class Confirmed:
    """What the sample before said."""

    def __init__(self) -> None:
        self._before: Set[Identity] = set()

    def take(self, findings: Sequence[Finding]) -> List[Finding]:
        """The findings of this sample that the one before had as well."""
        before, self._before = self._before, {identity(one) for one in findings}
        return [one for one in findings if identity(one) in before]

    def forget(self) -> None:
        """Begin anew."""
        self._before = set()
