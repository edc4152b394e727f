"""Moments as text that sorts by time: ISO 8601, UTC, seconds."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from .errors import BadEvent

_ZONE = re.compile(r"([+-]\d\d)(\d\d)$")


def utc(stamp: object) -> str:
    """Any stamp with a zone ("...Z", "...+0000", fractions) as ours. Raises BadEvent."""
    text = _ZONE.sub(r"\1:\2", str(stamp).replace("Z", "+00:00"))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise BadEvent(f"stamp {str(stamp)[:60]!r}: wanted ISO 8601 with a time zone")
    return moment.astimezone(timezone.utc).isoformat(timespec="seconds")


def now() -> str:
    """The present moment."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
