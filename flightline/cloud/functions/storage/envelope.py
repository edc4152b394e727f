"""The envelope in which CloudWatch Logs hands log events to a subscriber. Pure.

Source: CloudWatch Logs user guide, "Real-time processing of log data with subscriptions": `awslogs.data` is base64
of gzip of JSON with messageType, owner, logGroup, logStream, subscriptionFilters and logEvents.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..common.errors import InvalidEvent

MAX_BYTES = 64 * 1024 * 1024
"""What a 6 MB invocation of log text unpacks to is far below; more is damage or an attack."""
GZIP = 16 + zlib.MAX_WBITS
DATA, CONTROL = "DATA_MESSAGE", "CONTROL_MESSAGE"


@dataclass(frozen=True)
class LogEvent:
    """One line. stamp_ms: milliseconds since 1970."""

    id: str
    stamp_ms: int
    message: str


@dataclass(frozen=True)
class Envelope:
    """What one invocation brought. A control message (CloudWatch asks whether we are there) has no events."""

    group: str
    stream: str
    events: tuple[LogEvent, ...]


def is_envelope(event: object) -> bool:
    """Does this come from a CloudWatch Logs subscription?"""
    return isinstance(event, Mapping) and isinstance(event.get("awslogs"), Mapping)


def decode(event: Mapping[str, Any]) -> Envelope:
    """Open an envelope. Raises InvalidEvent naming what is wrong with it."""
    content = _content(event["awslogs"].get("data"))
    if content.get("messageType") == CONTROL:
        return Envelope("", "", ())
    if content.get("messageType") != DATA or not isinstance(content.get("logEvents"), list):
        raise InvalidEvent(f"messageType {content.get('messageType')!r}: wanted {DATA} with a list of logEvents")
    events = tuple(_event(raw) for raw in content["logEvents"])
    return Envelope(str(content.get("logGroup") or ""), str(content.get("logStream") or ""), events)


def _content(data: object) -> Mapping[str, Any]:
    if not isinstance(data, str):
        raise InvalidEvent("awslogs.data is missing")
    try:
        reader = zlib.decompressobj(GZIP)
        raw = reader.decompress(base64.b64decode(data, validate=True), MAX_BYTES)
        if not reader.eof:
            raise InvalidEvent(f"awslogs.data is cut off, or unpacks to more than {MAX_BYTES} bytes")
        content = json.loads(raw)
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        if isinstance(error, InvalidEvent):
            raise
        raise InvalidEvent(f"awslogs.data is not base64 of gzip of JSON: {error}") from None
    if not isinstance(content, Mapping):
        raise InvalidEvent(f"awslogs.data holds a {type(content).__name__}, wanted an object")
    return content


def _event(raw: object) -> LogEvent:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("message"), str):
        raise InvalidEvent("a log event without a message")
    stamp = raw.get("timestamp")
    return LogEvent(str(raw.get("id") or ""), stamp if isinstance(stamp, int) else 0, raw["message"])
