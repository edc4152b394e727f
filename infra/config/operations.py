"""Notifications, thresholds, boot preflight, budget, tags and the rest of what operators decide."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from infra.config.model import BootSettings, MonitoringSettings, NotificationSettings, Thresholds
from infra.config.values import Values
from infra.planning.lifecycle import MOST_MIN
from infra.planning.names import too_long

EMAIL = r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}"
WEBHOOK_HOST = "hooks.slack.com"
# Values that CloudWatch Logs takes (PutRetentionPolicy), without "never": every group has a retention.
RETENTION_DAYS = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731),
    *(1096, 1827, 2192, 2557, 2922, 3288, 3653),
)
MOST_TAGS = 30
"""EC2 takes 50 tags; the rest is for the project's own and for those that AWS services add."""

RESERVED_TAGS = ("aws:", "flightline:")


def cluster_name(values: Values, region: str) -> None:
    """Refuse a name that is too short, or too long for what is derived from it."""
    name = values.text("clusterName")
    for wanted in too_long(name, region):
        values.refuse("clusterName", wanted)
    if len(name) < 3:
        values.refuse("clusterName", "three characters or more")


def notifications(values: Values, webhook: Any, webhook_is_secret: bool) -> NotificationSettings:
    """Whom to tell. webhook: the secret Output that stands for the key's value."""
    given = NotificationSettings(**values.section(NotificationSettings))
    emails = given.emails
    for email in emails:
        if not re.fullmatch(EMAIL, email):
            values.refuse("alertEmails", "an e-mail address such as ops@example.com", email)
    if len(set(emails)) < len(emails):
        values.refuse("alertEmails", "each address once")
    url = values.text("slackWebhook")
    if not url:
        return given
    if not webhook_is_secret:
        values.refuse(
            "slackWebhook", "a secret, `pulumi config set --secret slackWebhook`; this one is known, make another"
        )
    if not _slack_url(url):
        values.refuse("slackWebhook", f"an incoming webhook, https://{WEBHOOK_HOST}/services/...")
    return replace(given, slack_webhook=webhook)


def _slack_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    plain = not (parts.username or parts.password or parts.query or parts.fragment) and port in (None, 443)
    path = re.fullmatch(r"/services(/[A-Za-z0-9]+){3}", parts.path)
    return parts.scheme == "https" and parts.hostname == WEBHOOK_HOST and plain and path is not None


def monitoring(values: Values) -> MonitoringSettings:
    """Alarm thresholds and log retention."""
    days = values.number("logRetentionDays")
    if days not in RETENTION_DAYS:
        above = next((choice for choice in RETENTION_DAYS if choice > days), RETENTION_DAYS[-1])
        position = max(RETENTION_DAYS.index(above), 1)
        low, high = RETENTION_DAYS[position - 1 : position + 1]
        values.refuse("logRetentionDays", f"days CloudWatch Logs takes; the nearest are {low} and {high}")
    return MonitoringSettings(thresholds=Thresholds(**values.section(Thresholds)), **values.section(MonitoringSettings))


def boot(values: Values, package_mistake: Callable[[str], str | None]) -> BootSettings:
    """The boot preflight."""
    given = BootSettings(**values.section(BootSettings))
    wanted = package_mistake(given.package) if given.package else None
    if wanted:
        values.refuse("nodePackage", wanted)
    if given.minutes > MOST_MIN:
        most = MOST_MIN - given.time_limit_minutes
        values.refuse("configureMinutes", f"at most {most}: a group waits two hours for a node, its preflight included")
    return given


def borders(values: Values) -> None:
    """Refuse what is no account."""
    for account in values.items("trustedAccounts"):
        if not re.fullmatch(r"\d{12}", account):
            values.refuse("trustedAccounts", "twelve digits, an AWS account's id", account)


def tags(values: Values) -> Mapping[str, str]:
    """The site's own tags."""
    found: dict[str, str] = {}
    for item in values.items("tags"):
        key, equals, value = item.partition("=")
        wanted = _tag_mistake(key, bool(equals), value)
        if wanted:
            values.refuse("tags", wanted, item)
        # IAM takes Owner and owner for one key.
        elif same := [there for there in found if there.lower() == key.lower()]:
            values.refuse("tags", f"each key once, {same[0]} is there already", item)
        found[key] = value
    if len(found) > MOST_TAGS:
        values.refuse("tags", f"at most {MOST_TAGS} tags", str(len(found)))
    return MappingProxyType(found)


def _tag_mistake(key: str, equals: bool, value: str) -> str | None:
    if not equals or not re.fullmatch(r"[\w .:/=+@-]{1,128}", key) or not re.fullmatch(r"[\w .:/=+@-]{0,256}", value):
        return "Key=Value of letters, digits, spaces and . : / = + - @ _, up to 128 and 256 characters"
    if key.lower().startswith(RESERVED_TAGS) or key == "Name":
        return "a key other than Name and not under aws: or flightline:, which the stack sets itself"
    return None


def emulator(values: Values, endpoints: frozenset[str]) -> str | None:
    """Endpoint of an AWS emulator; only this machine's, or a stack could send credentials anywhere.

    endpoints: where aws:endpoints sends calls. Buckets of an emulator lack their TLS rule, so it must be one.
    """
    url: str | None = values.checked("emulatorEndpoint")
    if url and not values.refused("emulatorEndpoint") and endpoints != {url}:
        seen = f"{url}, and in aws:endpoints {', '.join(sorted(endpoints)) or 'nothing'}"
        values.refuse("emulatorEndpoint", "the URL of every service in aws:endpoints, or nothing for AWS itself", seen)
    return url
