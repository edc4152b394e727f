"""Notifications, thresholds, boot preflight, budget, tags and the rest of what operators decide."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from infra.config.draft import Draft
from infra.config.model import Boot, Budget, Monitoring, Notifications, Thresholds
from infra.planning.names import too_long

EMAIL = r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}"
WEBHOOK_HOST = "hooks.slack.com"
# Values that CloudWatch Logs takes (PutRetentionPolicy), without "never": every group has a retention.
RETENTION_DAYS = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731),
    *(1096, 1827, 2192, 2557, 2922, 3288, 3653),
)
BOOT_LEVELS = ("quick", "standard")
MOST_TAGS = 30
"""EC2 takes 50 tags; the rest is for the project's own and for those that AWS services add."""

RESERVED_TAGS = ("aws:", "flightline:")
LOOPBACK = r"https?://(127\.\d{1,3}\.\d{1,3}\.\d{1,3}|localhost|\[::1\]):\d{2,5}/?"


def cluster_name(draft: Draft, region: str) -> str:
    """The cluster's name, short enough for everything derived from it."""
    name = draft.matching(
        "clusterName",
        r"(?!sthree-|amzn-)[a-z](?:-?[a-z0-9])+",
        "small letters, digits and single hyphens, from a letter, three or more; not sthree- or amzn-, which S3 keeps",
    )
    for wanted in too_long(name, region):
        draft.refuse("clusterName", wanted)
    if len(name) < 3:
        draft.refuse("clusterName", "three characters or more")
    return name


def notifications(draft: Draft, webhook: Any, webhook_is_secret: bool) -> Notifications:
    """Whom to tell. webhook: the secret Output that stands for the key's value."""
    emails = draft.items("alertEmails")
    for email in emails:
        if not re.fullmatch(EMAIL, email):
            draft.refuse("alertEmails", "an e-mail address such as ops@example.com", email)
    if len(set(emails)) < len(emails):
        draft.refuse("alertEmails", "each address once")
    url = draft.text("slackWebhook")
    if not url:
        return Notifications(emails)
    if not webhook_is_secret:
        draft.refuse(
            "slackWebhook", "a secret, `pulumi config set --secret slackWebhook`; this one is known, make another"
        )
    if not _slack_url(url):
        draft.refuse("slackWebhook", f"an incoming webhook, https://{WEBHOOK_HOST}/services/...")
    return Notifications(emails, webhook)


def _slack_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    plain = not (parts.username or parts.password or parts.query or parts.fragment) and port in (None, 443)
    path = re.fullmatch(r"/services(/[A-Za-z0-9]+){3}", parts.path)
    return parts.scheme == "https" and parts.hostname == WEBHOOK_HOST and plain and path is not None


def monitoring(draft: Draft) -> Monitoring:
    """Alarm thresholds and log retention."""
    days = draft.number("logRetentionDays")
    if days not in RETENTION_DAYS:
        above = next((choice for choice in RETENTION_DAYS if choice > days), RETENTION_DAYS[-1])
        position = max(RETENTION_DAYS.index(above), 1)
        low, high = RETENTION_DAYS[position - 1 : position + 1]
        draft.refuse("logRetentionDays", f"days CloudWatch Logs takes; the nearest are {low} and {high}")
    thresholds = Thresholds(
        cpu_percent=draft.within("thresholdCpuPercent", 1, 100, "percent"),
        memory_percent=draft.within("thresholdMemoryPercent", 1, 100, "percent"),
        disk_percent=draft.within("thresholdDiskPercent", 1, 100, "percent"),
        disk_busy_percent=draft.within("thresholdDiskBusyPercent", 1, 100, "percent"),
        gpu_temperature_c=draft.within("thresholdGpuTemperatureC", 40, 110, "degrees Celsius"),
        gpu_utilization_percent=draft.within("thresholdGpuUtilizationPercent", 0, 100, "percent"),
        gpu_memory_percent=draft.within("thresholdGpuMemoryPercent", 1, 100, "percent"),
        gpu_power_w=draft.within("thresholdGpuPowerW", 0, 3000, "watts"),
        network_errors_per_minute=draft.within("thresholdNetworkErrorsPerMinute", 1, 1_000_000),
        efa_errors_per_minute=draft.within("thresholdEfaErrorsPerMinute", 1, 1_000_000),
    )
    return Monitoring(thresholds, days)


def boot(draft: Draft, package_mistake: Callable[[str], str | None]) -> Boot:
    """The boot preflight. A lifecycle hook waits two hours at most; a deep run can take longer."""
    level = draft.text("bootPreflightLevel")
    if level not in BOOT_LEVELS:
        draft.refuse("bootPreflightLevel", "quick or standard; a deep run lasts hours, start it from the control node")
    minutes = draft.within("bootPreflightMinutes", 10, 120, "minutes")
    package = draft.text("nodePackage") or None
    wanted = package_mistake(package) if package else None
    if wanted:
        draft.refuse("nodePackage", wanted)
    return Boot(
        level,
        minutes,
        package,
        failures=draft.within("bootFailureLimit", 0, 1000, "boots"),
        configure=draft.flag("configureAtBoot"),
        configure_minutes=draft.within("configureMinutes", 5, 240, "minutes"),
    )


def budget(draft: Draft) -> Budget:
    """The monthly budget."""
    return Budget(draft.within("monthlyBudgetUsd", 0, 1_000_000_000, "US dollars; 0 is no budget"))


def tags(draft: Draft) -> Mapping[str, str]:
    """The site's own tags."""
    found: dict[str, str] = {}
    for item in draft.items("tags"):
        key, equals, value = item.partition("=")
        wanted = _tag_mistake(key, bool(equals), value)
        if wanted:
            draft.refuse("tags", wanted, item)
        # IAM takes Owner and owner for one key.
        elif same := [there for there in found if there.lower() == key.lower()]:
            draft.refuse("tags", f"each key once, {same[0]} is there already", item)
        found[key] = value
    if len(found) > MOST_TAGS:
        draft.refuse("tags", f"at most {MOST_TAGS} tags", str(len(found)))
    return MappingProxyType(found)


def _tag_mistake(key: str, equals: bool, value: str) -> str | None:
    if not equals or not re.fullmatch(r"[\w .:/=+@-]{1,128}", key) or not re.fullmatch(r"[\w .:/=+@-]{0,256}", value):
        return "Key=Value of letters, digits, spaces and . : / = + - @ _, up to 128 and 256 characters"
    if key.lower().startswith(RESERVED_TAGS) or key == "Name":
        return "a key other than Name and not under aws: or flightline:, which the stack sets itself"
    return None


def permissions_boundary(draft: Draft) -> str | None:
    """ARN of the policy that bounds every role of the stack."""
    pattern = r"(arn:aws[a-z-]*:iam::(\d{12}|aws):policy/[\w+=,.@/-]{1,512})?"
    return (
        draft.matching("permissionsBoundary", pattern, "a policy's ARN: arn:aws:iam::123456789012:policy/name") or None
    )


def emulator(draft: Draft, endpoints: frozenset[str]) -> str | None:
    """Endpoint of an AWS emulator; only this machine's, or a stack could send credentials anywhere.

    endpoints: where aws:endpoints sends calls. Buckets of an emulator lack their TLS rule, so it must be one.
    """
    url = draft.matching("emulatorEndpoint", f"({LOOPBACK})?", "nothing, or a loopback URL: http://127.0.0.1:5000")
    if url and not draft.refused("emulatorEndpoint") and endpoints != {url}:
        seen = f"{url}, and in aws:endpoints {', '.join(sorted(endpoints)) or 'nothing'}"
        draft.refuse("emulatorEndpoint", "the URL of every service in aws:endpoints, or nothing for AWS itself", seen)
    return url or None
