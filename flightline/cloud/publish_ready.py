"""What publishing needs of this machine, tried before there is anything to publish. AWS itself is not asked."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

from ..tell.channel import PEM, SECRET
from ..tell.channels import CHANNELS
from ..tell.secret import MANAGER, SecretError, resolve
from .publish_settings import OF_CHANNELS, VARIABLE, Publish


def lacking(settings: Publish) -> Iterator[str]:
    """What is not there, a sentence each."""
    places = [(name, place) for name, place in settings.channels.items() if OF_CHANNELS[name].kind == SECRET]
    elsewhere = [place for _, place in places if place.startswith(f"{MANAGER}:")]
    for name, place in places:
        try:
            if place not in elsewhere:
                resolve(place, str)
        except SecretError as error:
            yield f"{VARIABLE}.{name}: {error}"
    for name, path in settings.channels.items():
        if OF_CHANNELS[name].kind == PEM:
            yield from _certificates(name, path)
    for channel in CHANNELS.values():
        if channel.place(settings.channels):
            yield from (f"{VARIABLE}.{said}" for said in channel.lacking(settings.channels))
    if any((settings.table, settings.bucket, settings.channels.get("topic"), elsewhere)):
        yield from _region(settings.region)


def _certificates(name: str, path: str) -> Iterator[str]:
    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:
        yield f"{VARIABLE}.{name}: saw {error.strerror or error} at {path}, wanted a PEM file; do: name one"


def _region(named: str) -> Iterator[str]:
    from botocore.exceptions import BotoCoreError
    from botocore.session import get_session

    try:
        if not (named or get_session().get_config_variable("region")):
            yield f"{VARIABLE}.region: saw no AWS region, wanted one; do: set it here or in AWS_DEFAULT_REGION"
    except BotoCoreError as error:
        yield f"{VARIABLE}: saw {error}, wanted AWS settings that can be read; do: look at AWS_PROFILE"
