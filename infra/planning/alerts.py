"""Who may publish alerts: policies of the topic and of its key."""

from collections.abc import Mapping
from typing import Any

from infra.planning.names import Names, Place
from infra.planning.resource_policies import grant, policy, service, tls_only

PUBLISHERS = ("budgets.amazonaws.com", "cloudwatch.amazonaws.com", "costalerts.amazonaws.com")
"""AWS' services that publish to the topic: budget, alarms, cost anomalies. Rules send their events to a queue."""


def _own_account(place: Place) -> dict[str, Any]:
    # Without it another account could have the service publish here (confused deputy).
    return {"StringEquals": {"aws:SourceAccount": place.account}}


def _root(place: Place) -> dict[str, str]:
    return {"AWS": f"arn:{place.partition}:iam::{place.account}:root"}


def topic_policy(names: Names, place: Place) -> Mapping[str, Any]:
    """Roles of this account by their own policies, the services by name, nobody without TLS."""
    topic = place.arn("sns", names.alerts_topic)
    own = ["sns:GetTopicAttributes", "sns:ListSubscriptionsByTopic", "sns:Publish", "sns:Subscribe"]
    return policy(
        grant("Services", {"Service": list(PUBLISHERS)}, "sns:Publish", topic, _own_account(place)),
        grant("Account", _root(place), own, topic),
        tls_only("sns:Publish", topic),
    )


def probe_policy(names: Names, place: Place) -> Mapping[str, Any]:
    """Who may send to the monitoring's own queue: the alerts topic."""
    arn, topic = place.arn("sqs", names.probe_queue), place.arn("sns", names.alerts_topic)
    told = grant("Topic", service("sns"), "sqs:SendMessage", arn, {"ArnEquals": {"aws:SourceArn": topic}})
    return policy(told, tls_only("sqs:*", arn))


def key_policy(place: Place) -> Mapping[str, Any]:
    """The account administers the key by its own policies; the services may only encrypt with it."""
    encrypt = ["kms:Decrypt", "kms:GenerateDataKey*"]
    return policy(
        # In a key's own policy "*" is this key; without this statement nobody could ever change it.
        grant("Account", _root(place), "kms:*", "*"),
        grant("Services", {"Service": list(PUBLISHERS)}, encrypt, "*", _own_account(place)),
    )
