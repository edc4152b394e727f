"""Why a package manager failed, by its own words, and what to do about that: a version is seldom what is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

AGAIN = "then run again"
CAUSES = (
    (r"could not get lock|unable to (?:acquire|lock)|lock(?:file)? is held|waiting for process",
     f"another program installs packages on this host: see it with ps -ef, wait for its end, {AGAIN}"),
    (r"not valid yet|not yet valid|invalid for another",
     f"the clock of this host is behind: timedatectl and chronyc tracking show it; chronyc makestep, {AGAIN}"),
    (r"release file .*expired|invalid since|certificate has expired",
     f"the mirror offers an old snapshot, or the clock is ahead (timedatectl): mend the mirror, {AGAIN}"),
    (r"hash sum mismatch|unexpected size|hashes of expected file|checksum|digest mismatch",
     "the mirror, or a proxy, gives other bytes than its signed index names: leave verification on; another mirror"),
    (r"no space left|enough free space|needed on the .* filesystem",
     f"a disk is full: df -h and df -i name it; make room (apt-get clean, du -xh), {AGAIN}"),
    (r"failure resolving|could not resolve|name or service not known|no address associated",
     "a name is not resolved: getent hosts NAME, resolvectl status; mend DNS, or name a mirror inside the network"),
    (r"\b404\b|not found \[ip", f"the index names a file that the mirror has no more: apt-get update, {AGAIN}"),
)  # fmt: skip
"""Words of apt, dnf, python-apt and OpenSSL, each with what to do. The first that fits counts."""


def advice(said: Mapping[str, Any] | str, otherwise: str) -> str:
    """What to do about a failed package task. otherwise: what its role says where no cause is known."""
    parts = [said] if isinstance(said, str) else [str(said.get(key) or "") for key in ("msg", "stderr", "stdout")]
    text = " ".join(" ".join(parts).split())
    return next((do for words, do in CAUSES if re.search(words, text, re.IGNORECASE)), otherwise)
