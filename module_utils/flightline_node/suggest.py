"""Guess what a misspelt name was meant to be."""

from __future__ import annotations

from typing import Iterable, List

MOST = 3
ALIKE = 0.72
"""Of 1: one or two letters wrong; with difflib's own default (0.6) half of the names are alike."""

LISTED_BY = {
    "check": "flightline checks", "check or tag": "flightline checks", "threshold": "flightline checks CHECK",
    "fault": "flightline demo --faults",
}  # fmt: skip


def meant(word: object, known: Iterable[str]) -> str:
    """' (did you mean memory?)', or '' when nothing known comes near."""
    near = nearest(str(word), list(known))
    return f" (did you mean {' or '.join(near)}?)" if near else ""


def unknown(what: str, word: object, known: Iterable[str]) -> str:
    """What was seen and wanted where a name is none of many: three that are near it, never all of a hundred.

    Where no command lists them and nothing is near, they are listed here.
    """
    names, lists = sorted(known), LISTED_BY.get(what)
    near = meant(word, names)
    wanted = f"one of the {len(names)} known {what}s"
    if not (near or lists):
        wanted = f"one of the known {what}s: {', '.join(names)}"
    return f"saw unknown {what} {word!r}{near}; wanted {wanted}" + (f"; do: {lists} lists them" if lists else "")


def nearest(word: str, known: List[str]) -> List[str]:
    """Known names that look like a word, the nearest first; those that it begins before all others."""
    import difflib  # for mistakes only: nodes that have none do not pay for it

    cut, lower = word[:100], word[:100].lower()
    begun = [name for name in known if lower and name.lower().startswith(lower)] if len(lower) > 1 else []
    close = difflib.get_close_matches(cut, known, MOST, ALIKE)
    return list(dict.fromkeys([*begun[:MOST], *close]))[:MOST]
