"""/proc/meminfo."""

from __future__ import annotations

import re
from typing import Dict, Mapping

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("meminfo.txt",)

_LINE = re.compile(r"([^\s:]{1,64}):[ \t]+(\d{1,18})(?: kB)?\s*", re.ASCII)


def parse(files: Mapping[str, Data]) -> Facts:
    """{total_kib, available_kib, swap_total_kib, hugepages_total, ...}; sizes in KiB."""
    matches = (_LINE.fullmatch(line) for line in v.lines(t.only(files)))
    found: Dict[str, int] = {match.group(1): int(match.group(2)) for match in matches if match}
    if "MemTotal" not in found:
        raise ParseError("no MemTotal line: not /proc/meminfo")
    facts: Facts = {"total_kib": found["MemTotal"]}
    for name, key in (
        ("MemAvailable", "available_kib"),
        ("SwapTotal", "swap_total_kib"),
        ("SwapFree", "swap_free_kib"),
        ("HugePages_Total", "hugepages_total"),
        ("HugePages_Free", "hugepages_free"),
        ("Hugepagesize", "hugepage_kib"),
        ("HardwareCorrupted", "hardware_corrupted_kib"),
    ):
        if name in found:
            facts[key] = found[name]
    return facts
