"""What configure decided about a host, beside what the reader `versions` sees of it now."""

from __future__ import annotations

from typing import Any, Iterator, Tuple

from ..model import Facts

_NAMED = {"name": "host name", "nvidia_module": "NVIDIA driver", "efa_installer": "EFA installer", "nccl": "NCCL"}


def adopted(facts: Facts, part: str) -> bool:
    """Did configure take this part (driver, nccl, efa) from the image?"""
    return part in facts.get("decided", {}).get("adopted", ())


def changed(facts: Facts) -> Iterator[Tuple[str, str, str]]:
    """What, as it is, as it was decided: what changed since configure, which no pin shows.

    A further NCCL is the compliance suite's: the reader looks in more places than the role that recorded them.
    """
    decided = facts.get("decided", {})
    for key, what in _NAMED.items():
        wanted, seen = _shown(key, decided.get(key)), _shown(key, facts.get(key))
        if wanted and seen and not set(wanted.split(", ")) <= set(seen.split(", ")):
            yield what, seen, wanted


def _shown(key: str, value: Any) -> str:
    text = ", ".join(sorted(value)) if isinstance(value, list) else str(value or "")
    return text.partition(".")[0] if key == "name" else text
