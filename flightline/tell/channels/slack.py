"""Slack: an incoming webhook, or a bot, whose messages of one incident are one thread.

An incoming webhook answers no message id: there the common heading is all that holds messages together.
Source: Slack API reference, "Incoming webhooks" and chat.postMessage; Block Kit reference (50 blocks, 3,000 characters
in a section, 150 in a header).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...record.printable import clip
from ..channel import HOSTS, PEM, SECRET, Channel, ChannelSetting, DeliveryError, Means
from ..digest import MAX_MESSAGE, Alert, Digest, clean, groups, place_line, recovered_line, remedy_line, some
from ..sending import post

MAX_BLOCKS, MAX_SECTION, MAX_HEADER = 50, 2900, 149
MOST_GROUPS, BULLET = 20, "\N{BULLET} "
WEBHOOKS, API = "hooks.slack.com", "slack.com"


def send(digest: Digest, means: Means) -> str:
    """Send a digest: by the bot into its thread where it is about something that goes on, else by the webhook."""
    given = means.given
    if given["slack_bot"] and (digest.about or not given["slack"]):
        return _say(digest, means)
    url, hosts = means.secret("slack"), given["slack_hosts"].split()
    body = json.dumps(message(digest)).encode()
    post("Slack", url, body, {}, (), hosts, given["slack_ca"], means.sleep)
    return ""


def _say(digest: Digest, means: Means) -> str:
    """Send a digest as a bot; returns the id of the thread."""
    given, token = means.given, means.secret("slack_bot")
    if not token.isascii() or not token.isprintable():
        raise DeliveryError("the Slack token has characters that no token has: nothing was sent", later=False)
    made = {**message(digest), "channel": given["slack_channel"]}
    made |= {"thread_ts": means.thread} if means.thread else {}
    where, headers = f"https://{given['slack_api']}/api/chat.postMessage", {"Authorization": f"Bearer {token}"}
    body = json.dumps(made).encode()
    said = post("Slack", where, body, headers, (token,), ca_file=given["slack_ca"], sleep=means.sleep).said
    try:
        answer = json.loads(said)
        if answer["ok"] is True:
            return means.thread or str(answer["ts"])
        # Its words are one of a list ("channel_not_found"), and nothing that was sent.
        why = str(answer.get("error") or "no reason")[:80].replace(token, "***")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DeliveryError("Slack's answer cannot be read", later=True) from None
    raise DeliveryError(
        f"Slack refused the message: {why}; check the token's scope chat:write and the channel", later=False
    )


def message(digest: Digest) -> dict[str, Any]:
    """A Block Kit message. `text` is what notifications show."""
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": clip(clean(digest.title), MAX_HEADER)}}
    ]
    if digest.facts:
        blocks.append(_context(" | ".join(digest.facts)))
    found = groups(digest.alerts)
    blocks += [_section(_slack_group(group)) for group in found[:MOST_GROUPS]]
    more = len(found) - MOST_GROUPS
    if more > 0:
        blocks.append(_section(f"+{more:,} more kinds of trouble, all in the report."))
    if digest.recovered:
        lines = [_escape(recovered_line(alert)) for alert in digest.recovered]
        blocks.append(_section("\n".join([":white_check_mark: *Recovered*", *some(lines, BULLET)])))
    if digest.quiet:
        blocks.append(_context(f"{digest.quiet:,} more known and told before, still there."))
    if digest.link:
        link, name = _escape(digest.link), digest.link_name
        blocks.append(_section(f"<{link}|{name}>" if digest.link.startswith("https://") else f"{name}: `{link}`"))
    if digest.again:
        blocks.append(_context(f"Look back: {digest.again}"))
    return {"text": _escape(clip(clean(digest.title), MAX_HEADER)), "blocks": blocks[:MAX_BLOCKS]}


def _slack_group(group: Sequence[Alert]) -> str:
    first = group[0]
    expected = f", expected {_escape(first.expected)}" if first.expected else ""
    lines = [f"*{first.status} {_escape(first.check)}*{expected}", _escape(clip(clean(first.message), MAX_MESSAGE))]
    return "\n".join(
        [*lines, f"*Do:* {_escape(remedy_line(first))}", *some([_escape(place_line(alert)) for alert in group], BULLET)]
    )


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": clip(text, MAX_SECTION)}}


def _context(text: str) -> dict[str, Any]:
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": clip(_escape(clean(text)), MAX_SECTION)}]}


def _escape(text: str) -> str:
    """Slack's three: nothing from a node can become a link or a mention."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_PLACE = "env:NAME, file:PATH or secretsmanager:NAME-OR-ARN"
CHANNEL = Channel(
    "Slack",
    (
        ChannelSetting("slack", f"where the incoming webhook is kept: {_PLACE}", SECRET, switches=True),
        ChannelSetting(
            "slack_bot",
            "where a bot's token is kept, as slack: incidents become threads of slack_channel",
            SECRET,
            switches=True,
            needs="slack_channel",
        ),
        ChannelSetting(
            "slack_channel", "id of the channel that the bot writes to, such as C0123456789", needs="slack_bot"
        ),
        ChannelSetting("slack_hosts", "hosts that the webhook may have", HOSTS, default=WEBHOOKS),
        ChannelSetting("slack_api", "host of the API that the bot uses; slack-gov.com for GovSlack", default=API),
        ChannelSetting("slack_ca", "certificates that Slack's host is checked against, a PEM file", PEM),
    ),
    send,
)
