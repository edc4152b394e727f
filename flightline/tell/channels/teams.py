"""Microsoft Teams, by a workflow that begins with "When a Teams webhook request is received".

Source: Microsoft Learn, "Create incoming webhooks with Workflows for Microsoft Teams" (the card as an
attachment, 28 KB) and the Adaptive Cards schema 1.4. Text of nodes is in TextRuns, which know no Markdown: it can
become no link.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ...record.printable import clip
from ..channel import HOSTS, PEM, PLACES, SECRET, Channel, ChannelSetting, Means
from ..digest import MAX_MESSAGE, Alert, Digest, clean, groups, place_line, recovered_line, remedy_line, some
from ..sending import post

MAX_BYTES = 26_000
WORKFLOW_HOSTS = ".logic.azure.com .api.powerplatform.com"


def send(digest: Digest, means: Means) -> str:
    """Send a digest as a card."""
    url, given = means.secret("teams"), means.given
    body = json.dumps(card(digest)).encode()
    post("Teams", url, body, {}, (), given["teams_hosts"].split(), given["teams_ca"], means.sleep)
    return ""


def card(digest: Digest) -> dict[str, Any]:
    """The message with its card; kinds of trouble that do not fit are counted."""
    found = groups(digest.alerts)
    kept = len(found)
    while True:
        made = _message(digest, found[:kept], len(found) - kept)
        if kept == 0 or len(json.dumps(made)) <= MAX_BYTES:
            return made
        kept -= 1


def _message(digest: Digest, found: Sequence[Sequence[Alert]], more: int) -> dict[str, Any]:
    body = [_text(digest.title, size="Large", weight="Bolder"), *_texts(digest.facts)]
    for group in found:
        body += _group(group)
    if more:
        body.append(_text(f"+{more:,} more kinds of trouble, all in the report."))
    if digest.recovered:
        body += [_text("Recovered", weight="Bolder"), *_texts(some([recovered_line(one) for one in digest.recovered]))]
    if digest.quiet:
        body.append(_text(f"{digest.quiet:,} more known and told before, still there."))
    if digest.again:
        body.append(_text(f"Look back: {digest.again}"))
    content: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
    }
    if digest.link.startswith("https://"):
        content["actions"] = [{"type": "Action.OpenUrl", "title": digest.link_name, "url": digest.link}]
    elif digest.link:
        body.append(_text(f"{digest.link_name}: {digest.link}"))
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": content}
    return {"type": "message", "attachments": [attachment]}


def _group(group: Sequence[Alert]) -> Iterator[dict[str, Any]]:
    first = group[0]
    expected = f", expected {first.expected}" if first.expected else ""
    yield _text(f"{first.status} {first.check}{expected}", weight="Bolder")
    lines = [clip(clean(first.message), MAX_MESSAGE), f"Do: {remedy_line(first)}"]
    yield from _texts([*lines, *some([place_line(alert) for alert in group])])


def _texts(lines: Sequence[str]) -> list[dict[str, Any]]:
    return [_text(line) for line in lines]


def _text(text: str, **style: str) -> dict[str, Any]:
    run = {"type": "TextRun", "text": clip(clean(text), MAX_MESSAGE), **style}
    return {"type": "RichTextBlock", "inlines": [run], "spacing": "Small"}


CHANNEL = Channel(
    "Teams",
    (
        ChannelSetting("teams", f"where the address of a Teams workflow is kept: {PLACES}", SECRET, switches=True),
        ChannelSetting("teams_hosts", "hosts that the workflow may have", HOSTS, default=WORKFLOW_HOSTS),
        ChannelSetting("teams_ca", "certificates that the workflow's host is checked against, a PEM file", PEM),
    ),
    send,
)
