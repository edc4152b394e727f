"""An SNS topic: e-mail, SMS, queues, functions, whatever subscribes to it."""

from __future__ import annotations

from typing import Any

from ...record.printable import clip
from ..channel import Channel, ChannelSetting, Means
from ..digest import Digest, render, subject

MOST_GROUP = 128
"""Characters of a message group's id. Source: SNS API reference, Publish."""


def send(digest: Digest, means: Means) -> str:
    """Publish a digest as text."""
    means.client("sns").publish(**message(digest, means.given["topic"]))
    return ""


def message(digest: Digest, topic: str) -> dict[str, Any]:
    """Arguments of `publish` for a digest; a FIFO topic drops what it has had already by the key."""
    words = {"key": digest.key, "run": digest.run_id, "alerts": str(len(digest.alerts)), "kind": "digest"}
    words["state"] = digest.state
    made = {
        "TopicArn": topic,
        "Subject": subject(digest.title),
        "Message": render(digest),
        "MessageAttributes": {
            name: {"DataType": "String", "StringValue": value} for name, value in words.items() if value
        },
    }
    if topic.endswith(".fifo"):
        group = clip(digest.about, MOST_GROUP) or "flightline"
        made |= {"MessageGroupId": group, "MessageDeduplicationId": digest.key}
    return made


CHANNEL = Channel(
    "SNS",
    (
        ChannelSetting(
            "topic",
            "SNS topic's ARN",
            switches=True,
            pattern=r"arn:[a-z0-9-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}(\.fifo)?",
            wanted="an SNS topic's ARN such as arn:aws:sns:eu-west-1:123456789012:flightline",
        ),
    ),
    send,
)
