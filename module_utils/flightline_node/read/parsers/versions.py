"""The reader `versions`: what software the node runs, from files."""

from __future__ import annotations

from typing import Mapping

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("versions.json",)

_WORDS = ("kernel", "efa_installer", "efa_driver", "nvidia_module", "ofi_nccl", "os", "lustre")


def parse(files: Mapping[str, Data]) -> Facts:
    """{kernel, efa_installer, efa_driver, nvidia_module, ofi_nccl, os, lustre, nccl[]}: texts, absent if not found."""
    document = v.json_object(t.only(files))
    facts: Facts = {name: text for name, text in ((n, v.word(document.get(n))) for n in _WORDS) if text}
    nccl = document.get("nccl")
    found = [text for text in map(v.word, nccl if isinstance(nccl, list) else [nccl]) if text]
    if found:
        facts["nccl"] = found
    if not facts:
        raise ParseError(f"no version in it, keys {sorted(map(str, document))[:8]}")
    return facts
