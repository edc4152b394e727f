"""Settings become a plan: what every component reads."""

from __future__ import annotations

import pulumi

from flightline_pulumi.settings import Settings
from infra import images, zones
from infra import settings as configuration
from infra.components.base import ClusterPlan
from infra.config.errors import ConfigError
from infra.planning.joining import cluster_names


def plan(settings: Settings | None = None, *, network_is_given: bool = False) -> ClusterPlan:
    """Check the settings, ask AWS for zones, account and image, and plan. Raises RunError with every mistake.

    settings: keys of docs/settings.md. What they leave out is read from the stack's configuration (`flightline:KEY`),
    as is the region (`aws:region`) and the webhook, a secret. network_is_given: the program joins a network by
    NetworkArgs, so that blocks of subnets mean nothing.
    """
    try:
        chosen = configuration.load(zones.ask, settings, network_is_given)
        image = None if chosen.on_kubernetes else images.find(chosen)
    except ConfigError as error:
        raise pulumi.RunError(str(error)) from None
    place = zones.place(chosen.region)
    return ClusterPlan(chosen, pulumi.get_stack(), cluster_names(chosen, place), place, image)
