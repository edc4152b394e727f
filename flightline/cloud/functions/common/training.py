"""Training metadata as DynamoDB items. Pure. Keys and indexes as in `flightline.cloud.items`.

Table layout: `pk=JOB#<job>`, `sk=<at>#<run>#<status>`: one item per step of a run (starting, started, finished,
failed), never changed, so that writing it again changes nothing. Indexes by dataset, model and day, each in
order of time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from flightline.cloud import items

from .errors import InvalidEvent
from .stamps import utc

STATUSES = ("starting", "started", "running", "finished", "failed", "refused")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}")
MAX_DETAIL_BYTES = 64 * 1024


def item(meta: Mapping[str, Any], run: str) -> items.Item:
    """An item of metadata: job, dataset, model, status, at and whatever else. Raises InvalidEvent."""
    for name in ("job", "dataset", "model"):
        if not NAME.fullmatch(str(meta.get(name) or "")):
            raise InvalidEvent(f"{name} {str(meta.get(name))[:60]!r}: wanted letters, digits and ._/- (1 to 128)")
    if meta.get("status") not in STATUSES:
        raise InvalidEvent(f"status {meta.get('status')!r}: wanted one of {', '.join(STATUSES)}")
    at = utc(meta.get("at"))
    rest = {key: value for key, value in meta.items() if key not in (items.PK, items.SK, "day")}
    if items.size(rest) > MAX_DETAIL_BYTES:
        raise InvalidEvent(f"training metadata of {items.size(rest)} bytes: at most {MAX_DETAIL_BYTES}")
    return {
        **rest,
        items.PK: f"JOB#{items.part(meta['job'])}",
        items.SK: f"{at}#{items.part(run)}#{meta['status']}",
        "run": run,
        "at": at,
        "day": at[:10],
    }
