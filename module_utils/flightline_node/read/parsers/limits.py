"""Resource limits: /proc/self/limits or ulimit -a, and what the reader `limits` adds about job launchers."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional, Union

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("limits.txt",)

Limit = Union[int, str]
"""A number, or 'unlimited'."""

_PROC = re.compile(r"Max ([a-z ]{4,20}?) {2,}(\d{1,20}|unlimited) +(\d{1,20}|unlimited)\b")
_ULIMIT = re.compile(r"([a-zPO][a-zA-Z -]{4,25}?) *\([^)]{2,30}\) +(\d{1,20}|unlimited)$")
_NAMES = {
    "locked memory": "memlock",
    "max locked memory": "memlock",
    "open files": "nofile",
    "processes": "nproc",
    "max user processes": "nproc",
}
_LAUNCHER, _CONFIGURED = "# launcher ", "# configured "
_UNLIMITED = frozenset({"unlimited", "infinity", "-1"})
_CONFIG_WORDS = 4


def parse(files: Mapping[str, Data]) -> Facts:
    """The limits of this session, of job launchers, and those configured for logins.

    {memlock_soft_kib, memlock_hard_kib, nofile_soft, nofile_hard, nproc_soft, nproc_hard,
    launchers{name: the same}, configured[]{domain type memlock_kib}}; a limit is a number or 'unlimited'.

    ulimit -a has the soft limits only. launchers: the limits of the daemons that start jobs
    (slurmd, containerd); configured: pam_limits' memlock lines for login sessions.
    """
    facts: Facts = {}
    launchers: Dict[str, Dict[str, Limit]] = {}
    configured: List[Dict[str, Any]] = []
    target: Optional[Dict[str, Limit]] = facts
    for line in v.lines(t.only(files)):
        if line.startswith(_LAUNCHER):
            target = launchers.setdefault(line[len(_LAUNCHER) :].split(" ", 1)[0], {})
        elif line.startswith(_CONFIGURED):
            target = None
        elif target is None:
            configured += _configured(line)
        else:
            _limit(line, target)
    if "memlock_soft_kib" not in facts:
        raise ParseError("no locked memory limit in it: not /proc/self/limits or ulimit -a")
    return {**facts, "launchers": launchers, "configured": configured}


def _limit(line: str, target: Dict[str, Limit]) -> None:
    proc = _PROC.match(line)
    match = proc or _ULIMIT.match(line.rstrip())
    name = _NAMES.get(match.group(1)) if match else None
    if not match or not name:
        return
    unit = "_kib" if name == "memlock" else ""
    divisor = 1024 if proc and unit else 1  # ulimit prints KiB, the kernel bytes
    for kind, group in (("soft", 2), ("hard", 3)):
        if group == 2 or proc:
            word = match.group(group)
            target[f"{name}_{kind}{unit}"] = word if word == "unlimited" else int(word) // divisor


def _configured(line: str) -> List[Dict[str, Any]]:
    """One line of limits.conf: domain, soft, hard or -, item, value in KiB."""
    words = line.split("#", 1)[0].split()
    if len(words) != _CONFIG_WORDS or words[2] != "memlock":
        return []
    amount: Optional[Limit] = "unlimited" if words[3] in _UNLIMITED else v.integer(words[3])
    return [] if amount is None else [{"domain": words[0], "type": words[1], "memlock_kib": amount}]
