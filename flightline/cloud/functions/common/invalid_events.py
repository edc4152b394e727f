"""Keep what could not be used: people can look at it, and send it again when the cause is mended."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from flightline.cloud.signals import INVALID_EVENTS_PREFIX

MAX_BYTES = 6 * 1024 * 1024
"""Lambda's limit for an event is 6 MB."""


@dataclass(frozen=True)
class InvalidEvents:
    """A place in S3. client: an S3 client. function: whose events these are."""

    client: Any
    bucket: str
    function: str

    def keep(self, event: object, reason: str, now: datetime | None = None) -> str:
        """Store an event with the reason; the same event on the same day is one object. Returns its s3:// address."""
        body = json.dumps({"reason": reason, "event": event}, sort_keys=True, default=str).encode()[:MAX_BYTES]
        day = (now or datetime.now(timezone.utc)).strftime("%Y-%m-%d")
        key = f"{INVALID_EVENTS_PREFIX}{self.function}/{day}/{hashlib.sha256(body).hexdigest()}.json"
        self.client.put_object(Bucket=self.bucket, Key=key, Body=body, ContentType="application/json")
        return f"s3://{self.bucket}/{key}"
