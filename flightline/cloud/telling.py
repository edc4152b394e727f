"""The voice of the control side: its channels with their settings, AWS clients and secrets."""

from __future__ import annotations

from collections.abc import Mapping

from ..tell.channel import Means
from ..tell.voice import Voice, destinations
from .clients import Clients, said_of_aws
from .publish_settings import Publish


def voice_of(settings: Publish, clients: Clients) -> Voice:
    """Every channel that the settings switch on."""

    def manager(name: str) -> str:
        found = clients.get("secretsmanager").get_secret_value(SecretId=name)
        return str(found.get("SecretString") or "")

    def means(given: Mapping[str, str]) -> Means:
        return Means(given, clients.get, manager)

    return Voice(destinations(settings.channels, means), said_of_aws)
