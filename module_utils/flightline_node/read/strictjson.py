"""JSON as RFC 8259 means it: no key twice (the last would win, and hide a FAIL behind a PASS), no NaN."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Tuple, Union


def loads(text: Union[str, bytes]) -> Any:
    """A value from JSON. Raises ValueError for what is not JSON, a key given twice, or a nesting beyond all reason."""
    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def once(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    """An object's pairs, as json.loads hands them to a hook. Raises ValueError for a key that is given twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice[:60]!a} is given twice")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON number")
