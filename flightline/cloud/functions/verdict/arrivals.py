"""Which runs a batch of messages is about: S3 says that an order or an answer was written. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote, unquote_plus

from flightline.cloud import orders
from flightline.contract import CALLS_PREFIX

from ..common.errors import InvalidEvent

STDOUT = "stdout"
_PARTS = 6
"""Of an answer's key below CALLS_PREFIX: run, command, instance, plugin, step, stdout. Source: the user guide of
Systems Manager, "Configuring Amazon S3 for Run Command"."""


@dataclass
class Arrival:
    """What a batch says of one run. answers: instance id -> keys. messages: who said so; orders: those of its order.

    early: an answer that is to be looked at again.
    """

    answers: dict[str, list[str]] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    orders: list[str] = field(default_factory=list)
    early: bool = False


def read(body: Mapping[str, Any], bucket: str) -> list[tuple[str, str, str]]:
    """(run, instance id, key) of each object that a message tells of; no instance id for an order.

    Raises InvalidEvent for what is no word of this bucket.
    """
    if body.get("Event") == "s3:TestEvent":
        return []
    records = body.get("Records")
    if not isinstance(records, list) or not records:
        raise InvalidEvent("not an event of S3: wanted Records")
    return [_one(record, bucket) for record in records]


def _one(record: Any, bucket: str) -> tuple[str, str, str]:
    try:
        found, key = str(record["s3"]["bucket"]["name"]), unquote_plus(str(record["s3"]["object"]["key"]))
    except (KeyError, TypeError):
        raise InvalidEvent("an event of S3 without a bucket and a key") from None
    if found != bucket:
        raise InvalidEvent(f"bucket {found[:80]!r}: wanted {bucket}")
    return (*place_of(key), key)


def place_of(key: str) -> tuple[str, str]:
    """Run and instance id in a key. Raises InvalidEvent for any other."""
    parts = key.removeprefix(CALLS_PREFIX).split("/")
    if key.startswith(CALLS_PREFIX) and len(parts) == _PARTS and parts[-1] == STDOUT and parts[0] and parts[2]:
        return parts[0], parts[2]
    run = key.split("/")[1] if key.count("/") == 2 else ""
    if run and key == orders.key_of(unquote(run)) and quote(unquote(run), safe="@:+,=") == run:
        return unquote(run), ""
    raise InvalidEvent(f"key {key[:200]!r}: wanted an answer or a run's order")


def command_of(key: str) -> str:
    """The id of the command in an answer's key."""
    return key.removeprefix(CALLS_PREFIX).split("/")[1]
