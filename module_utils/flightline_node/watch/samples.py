"""The sampler's lines as facts: EFA, memory controllers, RAID and DCGM, judged by the checks of a preflight."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional

from ..judge.checks.efa_counters import ERRORS
from ..model import Facts, Finding, ParseError
from ..read.parsers import dcgm_health, efa_counters, sysfs
from .child import Child
from .confirm import Confirmed
from .out_of_service import complain
from .verdicts import DCGM, SYSFS, Rules

PARSERS = {
    "sysfs.json": ("sysfs", sysfs.parse),
    "efa-counters.json": ("efa_counters", efa_counters.parse),
    "dcgm-health.json": ("dcgm_health", dcgm_health.parse),
}
SILENT_TIMES, LEAST_SILENT_S, RETRY_S = 6.0, 60.0, 15.0


class SampleFeed:
    """The sampler kept running, and what its samples mean. `efa_growth`: errors counted since they were last asked."""

    def __init__(self, rules: Rules, root: str, path: str, every_s: float, dcgm_every_s: float) -> None:
        self._rules = rules
        settings = {"root": root, "path": path, "every_s": every_s, "dcgm_every_s": dcgm_every_s, "counters": ERRORS}
        argv = [sys.executable, "-m", __package__ + ".sampler", json.dumps(settings)]
        library = str(Path(__file__).parents[2])
        env = {**os.environ, "PYTHONPATH": library, "PYTHONDONTWRITEBYTECODE": "1"}
        self._child = Child(lambda: argv, env, max(LEAST_SILENT_S, every_s * SILENT_TIMES), RETRY_S)
        self._facts: Dict[str, Facts] = {}
        self._findings: List[Finding] = []
        self._confirmed = Confirmed()
        self.efa_growth = 0

    @property
    def fd(self) -> Optional[int]:
        """What to wait for."""
        return self._child.fd

    @property
    def due(self) -> float:
        """When to step at the latest."""
        return self._child.due

    def step(self, ready: bool, now: float) -> List[Finding]:
        """The findings that a sample confirms."""
        silences = self._child.silences
        found: List[Finding] = []
        for line in self._child.step(ready, now):
            found += self._sample(line)
        if self._child.silences > silences:
            complain("the sampler said nothing: a read of /sys may hang; it was started anew")
        return found

    def _sample(self, line: str) -> List[Finding]:
        try:
            news = json.loads(line)
        except ValueError:
            complain(f"the sampler said: {line[:200]}")
            return []
        if news:
            for name, text in news.items():
                self._read(name, text)
            self._findings = self._rules.judge((*SYSFS, *DCGM), self._facts)
        return self._confirmed.take(self._findings)

    def _read(self, name: str, text: Any) -> None:
        parser, parse = PARSERS[name]
        try:
            facts = parse({name: str(text).encode()})
        except ParseError:
            self._facts.pop(parser, None)
            return
        if parser == "efa_counters":
            self.efa_growth += growth(self._facts.get(parser), facts)
        self._facts[parser] = facts

    def counts(self) -> Dict[str, int]:
        """For the heartbeat: EFA errors since the last one. Whose fault they are one node alone cannot tell."""
        grown, self.efa_growth = self.efa_growth, 0
        return {"efa_errors": grown}

    def forget(self) -> None:
        """A release: what is still wrong is found again."""
        self._confirmed.forget()

    def close(self) -> None:
        """End the sampler."""
        self._child.close()


def growth(before: Optional[Facts], after: Facts) -> int:
    """How many errors the EFA devices counted between two samples; one that was reset begins anew."""
    total = 0
    for name, counters in after.get("devices", {}).items():
        old = (before or {}).get("devices", {}).get(name)
        for counter in ERRORS if old is not None else ():
            one, other = counters.get(counter), old.get(counter)
            if isinstance(one, int) and isinstance(other, int):
                total += max(0, one - other)
    return total
