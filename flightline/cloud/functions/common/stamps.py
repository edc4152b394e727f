"""Moments as text that sorts by time: ISO 8601, UTC, seconds."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from .errors import InvalidEvent

AHEAD = timedelta(hours=1)
"""What a clock may be ahead; AWS refuses requests of one that is off by more than 15 minutes."""
_ZONE = re.compile(r"([+-]\d\d)(\d\d)$")


def utc(stamp: object) -> str:
    """Any stamp with a zone ("...Z", "...+0000", fractions) as ours. Raises InvalidEvent."""
    text = _ZONE.sub(r"\1:\2", str(stamp).replace("Z", "+00:00"))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    # The calendar's ends leave no room for the hours that are counted from a moment.
    if moment is None or moment.tzinfo is None or not 1970 < moment.year < 9000:
        raise InvalidEvent(f"stamp {str(stamp)[:60]!r}: wanted ISO 8601 with a time zone, after 1970")
    return moment.astimezone(timezone.utc).isoformat(timespec="seconds")


def is_ahead(stamp: str, now_s: float | None = None) -> bool:
    """Whether one of our moments cannot have been yet: a clock was wrong. now_s: seconds since 1970."""
    now_ = datetime.now(timezone.utc) if now_s is None else datetime.fromtimestamp(now_s, timezone.utc)
    return datetime.fromisoformat(stamp) > now_ + AHEAD


def now() -> str:
    """The present moment."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
