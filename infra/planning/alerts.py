"""Who may publish alerts: policies of the topic and of its key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infra.planning.names import Names, Place

PUBLISHERS = (
    "budgets.amazonaws.com",
    "cloudwatch.amazonaws.com",
    "costalerts.amazonaws.com",
)
"""AWS' services that publish to the topic: budget, alarms, cost anomalies. Rules send their events to a queue."""


def _own_account(place: Place) -> dict[str, Any]:
    # Without it another account could have the service publish here (confused deputy).
    return {"StringEquals": {"aws:SourceAccount": place.account}}


def _root(place: Place) -> dict[str, str]:
    return {"AWS": f"arn:{place.partition}:iam::{place.account}:root"}


def topic_policy(names: Names, place: Place) -> Mapping[str, Any]:
    """Roles of this account by their own policies, the services by name, nobody without TLS."""
    topic = place.arn("sns", names.alerts_topic)
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "Services",
                "Effect": "Allow",
                "Principal": {"Service": list(PUBLISHERS)},
                "Action": "sns:Publish",
                "Resource": topic,
                "Condition": _own_account(place),
            },
            {
                "Sid": "Account",
                "Effect": "Allow",
                "Principal": _root(place),
                "Action": ["sns:GetTopicAttributes", "sns:ListSubscriptionsByTopic", "sns:Publish", "sns:Subscribe"],
                "Resource": topic,
            },
            _tls_only(topic),
        ],
    }


def _tls_only(topic: str) -> dict[str, Any]:
    return {
        "Sid": "TlsOnly",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "sns:Publish",
        "Resource": topic,
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }


def key_policy(place: Place) -> Mapping[str, Any]:
    """The account administers the key by its own policies; the services may only encrypt with it."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "Account",
                "Effect": "Allow",
                "Principal": _root(place),
                # In a key's own policy "*" is this key; without this statement nobody could ever change it.
                "Action": "kms:*",
                "Resource": "*",
            },
            {
                "Sid": "Services",
                "Effect": "Allow",
                "Principal": {"Service": list(PUBLISHERS)},
                "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
                "Resource": "*",
                "Condition": _own_account(place),
            },
        ],
    }
