"""What a function is given: names from its environment, clients made once per process."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from flightline.cloud import clients, signals
from flightline.cloud.clients import said_of_aws
from flightline.tell.channel import DeliveryError, Means
from flightline.tell.voice import Voice, destinations

from .claims import Claims
from .errors import ConfigMissing
from .invalid_events import InvalidEvents
from .log import count, say
from .notify import Notifier

ENV = "FLIGHTLINE_"
READ_S = 10
"""Five times that, and the waits between, is below the functions' time limit."""
LONGEST_WAIT_S = 40.0
"""All waits for a limited rate together: a function's time is short, and the event comes again."""
ONCE = frozenset({"ssm"})
"""A SendCommand that got no answer may have been carried out: the next delivery of the event looks first."""


@dataclass(frozen=True)
class ServiceNames:
    """Names of what a function uses.

    channels: settings of those that people are told by (flightline/tell/channels). link: for messages.
    node_group: the nodes' Auto Scaling group, with its hooks. boot_failures: fewest boots without a go that stop
    launches; 0: none.
    """

    cluster: str
    namespace: str
    results_table: str
    training_table: str
    results_bucket: str
    channels: Mapping[str, str] = field(default_factory=dict)
    link: str = ""
    node_group: str = ""
    boot_failures: int = 0
    launch_hook: str = ""
    drain_hook: str = ""

    @staticmethod
    def read(env: Mapping[str, str]) -> ServiceNames:
        """From the function's environment. Raises ConfigMissing with the variables that are not set."""
        wanted = ("cluster", "namespace", "results_table", "training_table", "results_bucket")
        given = {name: env.get(ENV + name.upper(), "") for name in wanted}
        missing = [ENV + name.upper() for name in wanted if not given[name]]
        if missing:
            raise ConfigMissing(f"environment variables not set: {', '.join(missing)}")
        return ServiceNames(
            **given,
            channels=json.loads(env.get(ENV + "CHANNELS") or "{}"),
            link=env.get(ENV + "LINK", ""),
            node_group=env.get(ENV + "NODE_GROUP", ""),
            boot_failures=int(env.get(ENV + "BOOT_FAILURES") or 0),
            launch_hook=env.get(ENV + "LAUNCH_HOOK", ""),
            drain_hook=env.get(ENV + "DRAIN_HOOK", ""),
        )


@dataclass(frozen=True)
class Services:
    """Everything with effects that a function has."""

    names: ServiceNames
    dynamodb: Any
    claims: Claims
    invalid: InvalidEvents
    notifier: Notifier

    def count(self, function: str, **values: float) -> None:
        """Publish counters of a function; what is zero is left out."""
        count(self.names.namespace, {"Function": function}, {name: value for name, value in values.items() if value})

    def keep_invalid(self, event: object, reason: str) -> None:
        """Keep an event or a line that cannot be used, and count it."""
        place = self.invalid.keep(event, reason)
        self.count(self.invalid.function, **{signals.INVALID_EVENTS: 1})
        say("bad event kept", reason=reason, place=place)

    def measure(self, **values: float) -> None:
        """Publish numbers of the whole cluster; zero is a measurement as well."""
        count(self.names.namespace, {"Cluster": self.names.cluster}, values)


@functools.cache
def client(service: str) -> Any:
    """A client that gives up before the function's time limit; the endpoint is AWS_ENDPOINT_URL's where that is set."""
    import boto3

    return boto3.client(service, config=clients.config(READ_S, 1 if service in ONCE else clients.ATTEMPTS))


def services(function: str, names: ServiceNames) -> Services:
    """What a function needs, on real clients."""
    dynamodb = client("dynamodb")
    claims = Claims(dynamodb, names.results_table)
    lost = functools.partial(count, names.namespace, {"Function": function}, {signals.ALERTS_LOST: 1})
    notifier = Notifier(
        dynamodb, names.results_table, names.cluster, claims, voice(names.channels, client), lost, link=names.link
    )
    return Services(names, dynamodb, claims, InvalidEvents(client("s3"), names.results_bucket, function), notifier)


def voice(channels: Mapping[str, str], client: Callable[[str], Any]) -> Voice:
    """The channels that the function's environment switches on."""

    def manager(name: str) -> str:
        said = str(client("secretsmanager").get_secret_value(SecretId=name).get("SecretString") or "")
        if not said.strip():
            # Not for later: the event would come again and again, and do all its other work each time.
            raise DeliveryError(f"the secret {name} is empty", later=False)
        return said

    def means(given: Mapping[str, str]) -> Means:
        return Means(given, client, manager, LONGEST_WAIT_S)

    return Voice(destinations(channels, means), said_of_aws)
