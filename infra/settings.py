"""The only reader of pulumi.Config: every key is checked before any resource, every mistake is listed at once."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.runtime.config import CONFIG, get_config, get_config_env, is_config_secret

from infra import node_package
from infra.config.model import BY_NAME, StackSettings
from infra.config.reader import read
from infra.config.values import warnings
from infra.planning.zones import Lookup

PROJECT = "flightline"
_WEBHOOK = "slackWebhook"


def load(lookup: Lookup, given: Mapping[str, Any] | None = None, network_is_given: bool = False) -> StackSettings:
    """Read and check the stack's configuration. given: what a program says instead of it, key by key.

    lookup answers which zones the region has and which of them offer an instance type: infra.zones.ask in a real
    run, a function of its own in tests. Raises ConfigError with every mistake.
    """
    config, values = pulumi.Config(PROJECT), {**_values(), **(given or {})}
    for warning in warnings(values):
        pulumi.log.warn(f"{PROJECT}: {warning}")
    return read(
        values,
        region=pulumi.Config("aws").get("region") or "",
        lookup=lookup,
        webhook=config.get_secret(_WEBHOOK),
        webhook_is_secret=is_config_secret(config.full_key(_WEBHOOK)),
        package_mistake=node_package.mistake,
        endpoints=endpoints(pulumi.Config("aws").get_object("endpoints")),
        network_is_given=network_is_given,
    )


def endpoints(services: Any) -> frozenset[str]:
    """URLs in aws:endpoints, a list of service and URL; what has another form, the provider refuses."""
    listed = services if isinstance(services, list) else []
    return frozenset(str(url) for part in listed if isinstance(part, dict) for url in part.values())


def _values() -> dict[str, Any]:
    """What the stack says under the project's name: known keys, and unknown ones, which are mistakes.

    Read below pulumi.Config, whose get() warns about a secret: the webhook's host is checked here and goes no further.
    """
    prefix = f"{PROJECT}:"
    found = {name.removeprefix(prefix) for name in (*CONFIG.get(), *get_config_env()) if name.startswith(prefix)}
    values = {name: get_config(prefix + name) for name in (*found, *BY_NAME)}
    return {name: value for name, value in values.items() if value is not None}
