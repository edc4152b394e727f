"""Events from an SQS queue: each message is one event, and only those that failed come again.

Source: AWS Lambda developer guide, "Implementing partial batch responses" (ReportBatchItemFailures): an empty list
is full success, and a function that raises fails the whole batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from .errors import InvalidEvent
from .log import say

Event = dict[str, Any]
Finish = Callable[[list[tuple[str, Any]]], dict[str, Exception]]


def is_batch(event: object) -> bool:
    """Did this event come through SQS?"""
    records = event.get("Records") if isinstance(event, dict) else None
    return isinstance(records, list) and bool(records) and all(_from_sqs(record) for record in records)


def bodies(event: Event) -> Iterator[tuple[str, Event | InvalidEvent, object]]:
    """Message id, the event in it (or why there is none), and the raw body."""
    for record in event["Records"]:
        raw = record.get("body")
        try:
            body = json.loads(raw)
            yield record["messageId"], body if isinstance(body, dict) else InvalidEvent("the message is no object"), raw
        except (TypeError, ValueError, RecursionError) as error:
            yield record["messageId"], InvalidEvent(f"the message is not JSON: {error}"), raw


def handle_batch(
    event: Event, one: Callable[[Event], Any], invalid: Callable[[object, str], object], finish: Finish | None = None
) -> Event:
    """Handle each message; what raised is named for another delivery, what is bad is kept and not delivered again.

    finish: gets message ids with what `one` returned, when all have been handled; returns what failed after all.
    """
    done: list[tuple[str, Any]] = []
    failed: dict[str, Exception] = {}
    for message_id, body, raw in bodies(event):
        try:
            done.append((message_id, _handle(body, raw, one, invalid)))
        except Exception as error:  # any message may fail for any reason, and must cost only itself
            failed[message_id] = error
    failed |= finish(done) if finish else {}
    for message_id, why in failed.items():
        say("message failed, will come again", message_id=message_id, error=f"{type(why).__name__}: {why}")
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _handle(
    body: Event | InvalidEvent, raw: object, one: Callable[[Event], Any], invalid: Callable[[object, str], object]
) -> Any:
    try:
        if isinstance(body, InvalidEvent):
            raise body
        return one(body)
    except InvalidEvent as error:
        invalid(raw, str(error))
        return None


def _from_sqs(record: object) -> bool:
    return isinstance(record, dict) and record.get("eventSource") == "aws:sqs" and "messageId" in record
