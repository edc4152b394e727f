"""ethtool -S of a network interface."""

from __future__ import annotations

import re
from typing import Dict, Mapping

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("ethtool.txt",)

_COUNTER = re.compile(r"\s*([A-Za-z][\w.-]{0,63}): (\d{1,20})\s*", re.ASCII)
_OF_ENA = "_allowance_exceeded"
"""AWS's guide shows these alone, as `ethtool -S eth0 | grep allowance` leaves them: without the title."""
_PER_QUEUE = re.compile(r"(?:[tr]x_?)?(?:queue_?)?\d", re.ASCII)


def parse(files: Mapping[str, Data]) -> Facts:
    """{counters{name: int}}: of the device; those of single queues, thousands on a large node, are left out."""
    counters: Dict[str, int] = {}
    titled = False
    for line in v.lines(t.only(files)):
        if not titled and line.lstrip().startswith("NIC statistics"):
            titled, counters = True, {}
        match = _COUNTER.fullmatch(line)
        if match and not _PER_QUEUE.match(match.group(1)):
            counters[match.group(1)] = int(match.group(2))
    if not counters or not (titled or any(name.endswith(_OF_ENA) for name in counters)):
        raise ParseError("no counter under 'NIC statistics': not ethtool -S")
    return {"counters": counters}
