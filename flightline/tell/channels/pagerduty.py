"""PagerDuty, by its Events API v2: one event for each trouble, and the same key resolves it.

Source: PagerDuty developer documentation, "Send an alert event" (fields, lengths, 202 for what was taken, 429 for a
limited rate).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from ...record.printable import clip
from ..channel import PEM, PLACES, SECRET, Channel, ChannelSetting, Means
from ..digest import Alert, Digest, clean
from ..sending import post

EVENTS = "events.pagerduty.com"
PATH = "/v2/enqueue"
MOST_EVENTS = 25
"""Troubles of one digest that get an event of their own; the others are one event together."""
MOST_SUMMARY, MOST_KEY = 1024, 255
SEVERITY = {"WARN": "warning", "UNKNOWN": "error"}
"""Of a status; every other that is told is critical."""


def send(digest: Digest, means: Means) -> str:
    """Send all events of a digest. PagerDuty takes an event that it has had as the same one."""
    key, ca = means.secret("pagerduty"), means.given["pagerduty_ca"]
    where = f"https://{means.given['pagerduty_host']}{PATH}"
    for event in events(digest):
        body = json.dumps({"routing_key": key, **event}).encode()
        post("PagerDuty", where, body, {}, (key,), ca_file=ca, sleep=means.sleep)
    return ""


def events(digest: Digest) -> Iterator[dict[str, Any]]:
    """The events of a digest, without the routing key."""
    for alert in digest.recovered:
        yield {"event_action": "resolve", "dedup_key": _key(digest.scope, alert.key)}
    for alert in digest.alerts[:MOST_EVENTS]:
        yield _triggered(digest, alert)
    more = digest.alerts[MOST_EVENTS:]
    if more:
        yield _event(digest, f"{digest.title}: {len(more):,} more troubles", "critical", _key(digest.scope, digest.key))
    if digest.alerts or digest.recovered:
        return
    dedup = _key(digest.scope, digest.about or digest.key)
    if digest.over:
        yield {"event_action": "resolve", "dedup_key": dedup}
    else:
        yield _event(digest, " | ".join((digest.title, *digest.facts)), "error", dedup)


def _triggered(digest: Digest, alert: Alert) -> dict[str, Any]:
    device = f" {alert.device}" if alert.device else ""
    summary = f"{alert.status} {alert.check} on {alert.where}{device}: {alert.message}"
    made = _event(digest, summary, SEVERITY.get(alert.status, "critical"), _key(digest.scope, alert.key))
    told = {"measured": alert.measured, "expected": alert.expected, "remedy": alert.remedy, "do": alert.remedy_text}
    made["payload"] |= {
        "source": clean(alert.host or alert.node),
        "component": clean(alert.device),
        "class": clean(alert.check),
        "custom_details": {name: clean(value) for name, value in told.items() if value} | {"run": digest.run_id},
    }
    return made


def _event(digest: Digest, summary: str, severity: str, key: str) -> dict[str, Any]:
    link = digest.link if digest.link.startswith("https://") else ""
    return {
        "event_action": "trigger",
        "dedup_key": key,
        "client": "Flightline",
        "payload": {
            "summary": clip(clean(summary), MOST_SUMMARY),
            "source": clean(digest.scope) or "flightline",
            "severity": severity,
            "group": clean(digest.scope),
        },
        **({"links": [{"href": link, "text": digest.link_name}]} if link else {}),
    }


def _key(scope: str, key: str) -> str:
    whole = f"{scope}#{key}"
    return whole if len(whole) <= MOST_KEY else hashlib.sha256(whole.encode()).hexdigest()


CHANNEL = Channel(
    "PagerDuty",
    (
        ChannelSetting("pagerduty", f"where an Events API v2 integration key is kept: {PLACES}", SECRET, switches=True),
        ChannelSetting("pagerduty_host", f"host of the API; {EVENTS} or events.eu.pagerduty.com", default=EVENTS),
        ChannelSetting("pagerduty_ca", "certificates that PagerDuty's host is checked against, a PEM file", PEM),
    ),
    send,
)
