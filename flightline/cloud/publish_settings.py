"""Where results are published and who is told: read from the inventory, the environment or options. No boto3 here."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from flightline_node.model import SettingsError

from ..tell import voice
from ..tell.channel import HOSTS, SECRET, ChannelSetting
from ..tell.channels import CHANNELS
from ..tell.secret import KINDS
from . import items

DEFAULT_TABLE = items.DEFAULT_TABLE
PUBLISH_ENV = "FLIGHTLINE_PUBLISH"
VARIABLE = "flightline_publish"
AWS = "aws"

_TABLE = re.compile(r"[A-Za-z0-9_.-]{3,255}")
_NAMESPACE = re.compile(r"[\w.#:/-]{1,255}", re.ASCII)
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


@dataclass(frozen=True)
class Publish:
    """Where to. Every target is optional. channels: their settings (flightline/tell/channels) by their names."""

    table: str = ""
    bucket: str = ""
    region: str = ""
    scope: str = "fleet"
    link: str = ""
    namespace: str = ""
    ttl_days: float = items.TTL_DAYS
    renotify_hours: float = 24.0
    channels: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for the outbox and for Ansible."""
        plain = asdict(self)
        return {**plain.pop("channels"), **plain}

    @property
    def target(self) -> str:
        """What must be sent to in order: runs for one target never overtake each other."""
        return "|".join(
            (self.region, self.table, *(self.channels.get(name, "") for name in voice.switches()), self.scope)
        )

    @property
    def tells(self) -> bool:
        """Is anybody told?"""
        return any(self.channels.get(name) for name in voice.switches())

    def link_of(self, run_id: str) -> str:
        """Where people find the report of a run."""
        if self.link:
            return self.link.replace("{run}", run_id)
        return f"s3://{self.bucket}/runs/{run_id}/report.html" if self.bucket else ""


OF_CHANNELS: Mapping[str, ChannelSetting] = {one.name: one for own in CHANNELS.values() for one in own.settings}
WHAT: Mapping[str, str] = {
    "table": f"DynamoDB table; {DEFAULT_TABLE} for true",
    "bucket": "S3 bucket for reports, bundles of failed nodes and records too large for an item",
    "region": "AWS region; else what the AWS configuration says",
    "scope": "name of the fleet: alerts are told once per scope",
    "link": "address of the report in messages; {run} stands for the run id",
    "namespace": "CloudWatch namespace of healing's numbers, such as Flightline/demo; none sends none",
    "ttl_days": "days until items expire; 0 keeps them",
    "renotify_hours": "hours until a trouble that stays is told again; 0 is never",
    **{name: one.what for name, one in OF_CHANNELS.items()},
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
    for name in (item.name for item in fields(Publish) if item.name != "channels"):
        value = given.get(name)
        if value is not None and value != "":
            values[name] = float(value) if name in _NUMBERS else str(value)
    channels = {
        name: " ".join(_hosts(given[name])) if one.kind == HOSTS else str(given[name])
        for name, one in OF_CHANNELS.items()
        if given.get(name)
    }
    return Publish(**values, channels=channels)


_NUMBERS = ("ttl_days", "renotify_hours")
_TEXTS = ("region", "scope", "link", "namespace", *(name for name, one in OF_CHANNELS.items() if one.kind != HOSTS))
MOST_DAYS = 36_500
MOST_SHOWN = 8
"""Characters of a mistaken place that are repeated: no secret is so short."""


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
    targets = ("table", "bucket", *voice.switches())
    if not any(given.get(name) for name in targets):
        yield f"table: saw nothing to publish to, wanted at least one of {', '.join(targets)}"
    yield from _type_mistakes(given)
    for name, pattern, wanted in (
        ("table", _TABLE, "a DynamoDB table's name"),
        ("bucket", _BUCKET, "an S3 bucket's name"),
        ("namespace", _NAMESPACE, "a CloudWatch namespace"),
        *((name, re.compile(one.pattern), one.wanted) for name, one in OF_CHANNELS.items() if one.pattern),
    ):
        if given.get(name) and not pattern.fullmatch(str(given[name])):
            yield f"{name}: saw {_shown(given[name])}, wanted {wanted}"
    for name, one in OF_CHANNELS.items():
        if one.needs and given.get(name) and not given.get(one.needs):
            yield f"{one.needs}: saw none, wanted it together with {name}: {OF_CHANNELS[one.needs].what}"
        if one.kind == SECRET:
            yield from _secret_mistakes(name, str(given.get(name) or ""))


def _type_mistakes(given: Mapping[str, Any]) -> Iterable[str]:
    for name in _NUMBERS:
        if not _is_number(given.get(name) or 0):
            yield f"{name}: saw {_shown(given[name])}, wanted a number from 0 to {MOST_DAYS:,}"
    for name in _TEXTS:
        if not isinstance(given.get(name) or "", str):
            yield f"{name}: saw {_shown(given[name])}, wanted text: {WHAT[name]}"
    for name in (name for name, one in OF_CHANNELS.items() if one.kind == HOSTS):
        hosts = given.get(name) or ""
        if not isinstance(hosts, (str, list, tuple)) or not all(isinstance(host, str) for host in hosts):
            yield f"{name}: saw {_shown(hosts)}, wanted a list of host names"


def _is_number(value: Any) -> bool:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return False
    return math.isfinite(number) and 0 <= number <= MOST_DAYS


def _secret_mistakes(setting: str, place: str) -> Iterable[str]:
    if not place:
        return
    kind, _, name = place.partition(":")
    if kind in KINDS and name and "//" not in place:
        return
    # What was given is not repeated where it may be the secret.
    if "//" in place or len(place) > MOST_SHOWN:
        yield f"{setting}: saw the secret itself, which does not belong here; wanted {WHAT[setting]}"
    else:
        yield f"{setting}: saw {place!r}, wanted {WHAT[setting]}"


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
    return dict(word.partition("=")[::2] for word in text.replace(",", " ").split())
