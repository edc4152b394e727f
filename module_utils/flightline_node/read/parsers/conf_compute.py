"""nvidia-smi conf-compute: is confidential computing on, and are its GPUs ready? Forms of -f, -q and -grs."""

from __future__ import annotations

import re
from typing import Mapping

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from .lazy import Lazy

FILES = ("conf-compute.txt",)

_STATE = re.compile(r"CC (?:status|State|feature)\s*:\s*(\w{2,20})", re.IGNORECASE)
_READY = re.compile(r"GPUs? Ready State\s*:\s*([A-Za-z][A-Za-z ]{1,20})", re.IGNORECASE)
_REFUSED = Lazy(
    r"invalid|not (?:supported|found|recogni[sz]ed|permitted)|unknown|unrecogni|fail|no devices", re.IGNORECASE
)
"""A driver before 530 does not know the command."""
MAX_BYTES = 64 << 10
_MULTI = re.compile(r"Multi-GPU Mode\s*:\s*([\w ]{2,40})", re.IGNORECASE)


def parse(files: Mapping[str, Data]) -> Facts:
    """{state, ready, multi_gpu_mode, said}: as printed, lower case; absent when not printed. said: its first line.

    Raises ParseError for another tool's output.
    """
    text = t.decode(t.only(files), MAX_BYTES)
    facts: Facts = {"said": next((line.strip() for line in text.splitlines() if line.strip()), "")[:200]}
    for name, pattern in (("state", _STATE), ("ready", _READY), ("multi_gpu_mode", _MULTI)):
        found = pattern.search(text)
        if found:
            facts[name] = " ".join(found.group(1).split()).lower()
    if not _said_any(facts) and not _REFUSED.search(text):
        raise ParseError(f"neither a state of confidential computing nor a refusal of nvidia-smi: {facts['said']!r}")
    return facts


def _said_any(facts: Facts) -> bool:
    """Was any state printed?"""
    return bool({"state", "ready", "multi_gpu_mode"} & set(facts))
