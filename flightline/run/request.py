"""Until when a run waits for its nodes: the same for the action plugin, the validation and the command line."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from flightline_node.bounds import DEADLINE_S, MAX_DEADLINE_S
from flightline_node.model import SettingsError

AROUND_S = 5.0
"""Of each round of hosts, for what Ansible does before and after it asks."""
FORK_S = 0.2
"""Of each host: Ansible's own cost, measured on two cores (bench_preflight: 0.12 s)."""


def deadline_s(level: str, given: Any = None) -> int:
    """Seconds for one node: as given, else the level's. Raises SettingsError."""
    if given in (None, "", 0):
        return DEADLINE_S.get(level, DEADLINE_S["quick"])
    try:
        seconds = math.ceil(float(given)) if not isinstance(given, bool) else 0
    except (TypeError, ValueError, OverflowError):
        seconds = 0
    if not 1 <= seconds <= MAX_DEADLINE_S:
        raise SettingsError(f"flightline_timeout_s: saw {given!r}, wanted seconds from 1 to {MAX_DEADLINE_S}")
    return seconds


def ends_in_s(deadlines_s: Collection[int], forks: int) -> float:
    """Seconds until the last of the hosts has answered or was given up."""
    if not deadlines_s:
        return 0.0
    rounds = math.ceil(len(deadlines_s) / max(forks, 1))
    return rounds * (max(deadlines_s) + AROUND_S) + FORK_S * len(deadlines_s)
