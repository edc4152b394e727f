"""The reader `versions`: what software the node runs, from files."""

from __future__ import annotations

from typing import Any, Mapping

from ...model import Facts, ParseError
from ..bundle import Data
from . import text as t
from . import values as v

FILES = ("versions.json",)

_WORDS = ("kernel", "efa_installer", "efa_driver", "nvidia_module", "ofi_nccl", "os", "lustre", "name")


def parse(files: Mapping[str, Data]) -> Facts:
    """{kernel, efa_installer, efa_driver, nvidia_module, ofi_nccl, os, lustre, name, nccl[], decided{}}, as found.

    decided: {name, nvidia_module, efa_installer, nccl[], adopted[]} of the host's record.
    """
    document = v.json_object(t.only(files))
    facts: Facts = {name: text for name, text in ((n, v.word(document.get(n))) for n in _WORDS) if text}
    _lists(facts, document, "nccl")
    decided = document.get("decided")
    if isinstance(decided, dict):
        words = ((n, v.word(decided.get(n))) for n in ("name", "nvidia_module", "efa_installer"))
        mine: Facts = {name: text for name, text in words if text}
        _lists(mine, decided, "nccl", "adopted")
        facts.update({"decided": mine} if mine else {})
    if not facts:
        raise ParseError(f"no version in it, keys {sorted(map(str, document))[:8]}")
    return facts


def _lists(facts: Facts, document: Mapping[str, Any], *names: str) -> None:
    for name in names:
        given = document.get(name)
        found = [text for text in map(v.word, given if isinstance(given, list) else [given]) if text]
        facts.update({name: found} if found else {})
