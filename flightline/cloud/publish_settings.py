"""Where results are published and who is told: read from the inventory, the environment or options. No boto3 here."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from flightline_node.model import SettingsError

from . import items
from .slack import HOSTS

DEFAULT_TABLE = items.DEFAULT_TABLE
PUBLISH_ENV = "FLIGHTLINE_PUBLISH"
VARIABLE = "flightline_publish"
SECRET_KINDS = ("env", "file", "secretsmanager")
AWS = "aws"

_TOPIC = re.compile(r"arn:[a-z0-9-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}(\.fifo)?")
_TABLE = re.compile(r"[A-Za-z0-9_.-]{3,255}")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


@dataclass(frozen=True)
class Publish:
    """Where to. Every target is optional; slack names where the webhook is kept, never the webhook itself."""

    table: str = ""
    bucket: str = ""
    topic: str = ""
    slack: str = ""
    slack_bot: str = ""
    slack_channel: str = ""
    region: str = ""
    scope: str = "fleet"
    link: str = ""
    ttl_days: float = items.TTL_DAYS
    renotify_hours: float = 24.0
    slack_hosts: tuple[str, ...] = HOSTS
    slack_ca: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for the outbox and for Ansible."""
        return {**asdict(self), "slack_hosts": list(self.slack_hosts)}

    @property
    def target(self) -> str:
        """What must be sent to in order: runs for one target never overtake each other."""
        return "|".join((self.region, self.table, self.topic, self.slack, self.scope))

    def link_of(self, run_id: str) -> str:
        """Where people find the report of a run."""
        if self.link:
            return self.link.replace("{run}", run_id)
        return f"s3://{self.bucket}/runs/{run_id}/report.html" if self.bucket else ""


WHAT: Mapping[str, str] = {
    "table": f"DynamoDB table; {DEFAULT_TABLE} for true",
    "bucket": "S3 bucket for reports, bundles of failed nodes and records too large for an item",
    "topic": "SNS topic's ARN",
    "slack": "where the incoming webhook is kept: env:NAME, file:PATH or secretsmanager:NAME-OR-ARN",
    "slack_bot": "where a bot's token is kept, as slack: incidents become threads of slack_channel",
    "slack_channel": "id of the channel that the bot writes to, such as C0123456789",
    "region": "AWS region; else what the AWS configuration says",
    "scope": "name of the fleet: alerts are told once per scope",
    "link": "address of the report in messages; {run} stands for the run id",
    "ttl_days": "days until items expire; 0 keeps them",
    "renotify_hours": "hours until a trouble that stays is told again; 0 is never",
    "slack_hosts": "hosts that the webhook may have",
    "slack_ca": "certificates that the webhook's host is checked against, a PEM file",
}


def publish(given: Any) -> Publish | None:
    """Settings from the inventory's value or the outbox's; None when nothing is to be published.

    Raises SettingsError with everything that is wrong.
    """
    if not given:
        return None
    if given is True or given == AWS:
        given = {"table": DEFAULT_TABLE}
    if not isinstance(given, Mapping):
        raise SettingsError(f"{VARIABLE}: saw {_shown(given)}, wanted true or a mapping with {', '.join(WHAT)}")
    if given.get("table") is True:
        given = {**given, "table": DEFAULT_TABLE}
    mistakes = list(_mistakes(given))
    if mistakes:
        raise SettingsError("; ".join(f"{VARIABLE}.{text}" for text in mistakes))
    values: dict[str, Any] = {}
    for item in fields(Publish):
        value = given.get(item.name)
        if value is None or value == "":
            continue
        if item.name == "slack_hosts":
            values[item.name] = tuple(_hosts(value))
        else:
            values[item.name] = float(value) if item.name in _NUMBERS else str(value)
    return Publish(**values)


_NUMBERS = ("ttl_days", "renotify_hours")
_TEXTS = ("region", "scope", "link", "slack_ca", "slack_channel")
MOST_DAYS = 36_500


def _shown(value: Any) -> str:
    """What was given, for a message; an address may be the webhook, which is a secret."""
    return "an address (not shown: it may be a secret)" if "//" in str(value) else repr(value)


def _hosts(value: str | Iterable[str]) -> list[str]:
    parts = value.split() if isinstance(value, str) else value
    return [part.strip().lower() for part in parts]


def _mistakes(given: Mapping[str, Any]) -> Iterable[str]:
    for name in given:
        if name not in WHAT:
            yield f"{name}: no such setting: saw {name!r}, wanted one of {', '.join(WHAT)}"
    if not any(given.get(name) for name in ("table", "bucket", "topic", "slack", "slack_bot")):
        yield "table: saw nothing to publish to, wanted at least one of table, bucket, topic, slack, slack_bot"
    if bool(given.get("slack_bot")) != bool(given.get("slack_channel")):
        yield "slack_channel: wanted together with slack_bot: a channel, and where its token is kept"
    yield from _type_mistakes(given)
    for name, pattern, wanted in (
        ("topic", _TOPIC, "an SNS topic's ARN such as arn:aws:sns:eu-west-1:123456789012:flightline"),
        ("table", _TABLE, "a DynamoDB table's name"),
        ("bucket", _BUCKET, "an S3 bucket's name"),
    ):
        if given.get(name) and not pattern.fullmatch(str(given[name])):
            yield f"{name}: saw {_shown(given[name])}, wanted {wanted}"
    for name in ("slack", "slack_bot"):
        yield from _slack_mistakes(name, str(given.get(name) or ""))


def _type_mistakes(given: Mapping[str, Any]) -> Iterable[str]:
    for name in _NUMBERS:
        if not _is_number(given.get(name) or 0):
            yield f"{name}: saw {_shown(given[name])}, wanted a number from 0 to {MOST_DAYS:,}"
    for name in _TEXTS:
        if not isinstance(given.get(name) or "", str):
            yield f"{name}: saw {_shown(given[name])}, wanted text: {WHAT[name]}"
    hosts = given.get("slack_hosts") or ""
    if not isinstance(hosts, (str, list, tuple)) or not all(isinstance(host, str) for host in hosts):
        yield f"slack_hosts: saw {_shown(hosts)}, wanted a list of host names"


def _is_number(value: Any) -> bool:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return False
    return math.isfinite(number) and 0 <= number <= MOST_DAYS


def _slack_mistakes(setting: str, place: str) -> Iterable[str]:
    if not place:
        return
    kind, _, name = place.partition(":")
    if "//" in place or "xox" in place:  # what was given is not repeated: it may be the secret
        yield f"{setting}: saw the secret itself, which does not belong here; wanted {WHAT[setting]}"
    elif kind not in SECRET_KINDS or not name:
        yield f"{setting}: saw {place!r}, wanted {WHAT[setting]}"


def from_pairs(pairs: Mapping[str, str]) -> dict[str, Any]:
    """Settings given as NAME=VALUE."""
    return {name: _hosts(value) if name == "slack_hosts" else value for name, value in pairs.items()}


def from_environment() -> Any:
    """What FLIGHTLINE_PUBLISH says: 'aws', a JSON object, or NAME=VALUE words. Raises SettingsError."""
    text = os.environ.get(PUBLISH_ENV, "").strip()
    if not text or text == AWS:
        return text
    if text.startswith("{"):
        try:
            return json.loads(text)
        except ValueError as error:
            raise SettingsError(
                f"{PUBLISH_ENV}: saw what is not JSON ({error}), wanted an object or table=... pairs"
            ) from None
    pairs = dict(word.partition("=")[::2] for word in text.replace(",", " ").split())
    return from_pairs(pairs)
