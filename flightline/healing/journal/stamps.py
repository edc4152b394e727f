"""Moments as text: ISO 8601, UTC. Pure but for now_utc."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone


def seconds(stamp: str) -> float:
    """Seconds since the epoch of an ISO 8601 stamp; 0 for what is none."""
    try:
        return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0


def now_utc() -> str:
    """The present moment: ISO 8601, UTC, milliseconds."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def later(stamp: str, seconds: float) -> str:
    """A stamp some seconds later."""
    moment = datetime.fromisoformat(stamp.replace("Z", "+00:00"))
    return (moment + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


def as_text(at_s: float) -> str:
    """A moment in seconds since the epoch as people read it, to the second."""
    return datetime.fromtimestamp(at_s, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
