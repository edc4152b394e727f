"""What is handed back to a module."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple


class Outcome(NamedTuple):
    """What changes (or would), and what the host is like: `before` and `after` make the diff."""

    changed: bool
    before: Dict[str, Any]
    after: Dict[str, Any]
    facts: Dict[str, Any]
