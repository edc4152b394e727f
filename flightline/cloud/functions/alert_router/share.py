"""Whether a launch fails by more than its bad nodes: a sequential test over boots in the order in which they end. Pure.

A cumulative sum of log likelihood ratios, a share of BAD against one of HEALTHY, that begins anew at zero (E. S. Page,
"Continuous inspection schemes", Biometrika 41, 1954; the ratio is A. Wald's, "Sequential tests of statistical
hypotheses", Annals of Mathematical Statistics 16, 1945). So goes of an hour ago hide no image that is bad now. From one
beginning the sum of a healthy launch comes to LIMIT with at most exp(-LIMIT) (J. Ville, 1939), and a launch of MOST
nodes has as many beginnings: together at most RISK.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

HEALTHY, BAD = 0.02, 0.5
"""Shares of boots without a go: what a healthy launch may have at most, and what is no launch to go on with."""
MOST = 2_000
"""Nodes of one launch."""
RISK = 0.001
"""That a healthy launch is stopped, at most."""
LIMIT = math.log(MOST / RISK)
_FAILED, _SERVED = math.log(BAD / HEALTHY), math.log((1 - BAD) / (1 - HEALTHY))


class Ends(NamedTuple):
    """Boots that ended at one moment. who: instances without a go. served: how many others had one."""

    at: str
    who: tuple[str, ...] = ()
    served: int = 0


class Run(NamedTuple):
    """The boots since the sum was last zero. score: the sum. who: those without a go. served: the others."""

    score: float = 0.0
    who: tuple[str, ...] = ()
    served: int = 0

    def after(self, failed: tuple[str, ...] = (), served: int = 0) -> Run:
        """With boots that ended after these, the goes first."""
        score = self.score + served * _SERVED
        kept = Run(score, self.who, self.served + served) if score > 0 else Run()
        return Run(kept.score + len(failed) * _FAILED, (*kept.who, *failed), kept.served)

    def stops(self, floor: int) -> bool:
        """Whether launches have to stop. floor: the fewest boots without a go for that; 0 is never."""
        return 0 < floor <= len(self.who) and self.score >= LIMIT


def run(ends: Iterable[Ends]) -> Run:
    """What boots come to, in order of time."""
    found = Run()
    for one in sorted(ends):
        found = found.after(one.who, one.served)
    return found
