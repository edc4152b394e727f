"""What publishing needs of this machine, tried before there is anything to publish. AWS itself is not asked."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

from .publish_settings import VARIABLE, Publish
from .secret import SecretError, resolve

MANAGER = "secretsmanager:"


def lacking(settings: Publish) -> Iterator[str]:
    """What is not there, a sentence each."""
    for name, place in (("slack", settings.slack), ("slack_bot", settings.slack_bot)):
        try:
            if place and not place.startswith(MANAGER):
                resolve(place, str)
        except SecretError as error:
            yield f"{VARIABLE}.{name}: {error}"
    if settings.slack_ca:
        try:
            ssl.create_default_context(cafile=settings.slack_ca)
        except OSError as error:
            saw = error.strerror or str(error)
            yield f"{VARIABLE}.slack_ca: saw {saw} at {settings.slack_ca}, wanted a PEM file; do: name one"
    asked = [settings.table, settings.bucket, settings.topic]
    if any((*asked, settings.slack.startswith(MANAGER), settings.slack_bot.startswith(MANAGER))):
        yield from _region(settings.region)


def _region(named: str) -> Iterator[str]:
    from botocore.exceptions import BotoCoreError
    from botocore.session import get_session

    try:
        if not (named or get_session().get_config_variable("region")):
            yield f"{VARIABLE}.region: saw no AWS region, wanted one; do: set it here or in AWS_DEFAULT_REGION"
    except BotoCoreError as error:
        yield f"{VARIABLE}: saw {error}, wanted AWS settings that can be read; do: look at AWS_PROFILE"
