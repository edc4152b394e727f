"""From a stack's raw values to its settings: pure, and every mistake at once."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from infra.config import access, joining, kubernetes, network, nodes, operations, storage
from infra.config.errors import ConfigError
from infra.config.model import EKS, BudgetSettings, StackSettings
from infra.config.values import Values
from infra.planning.zones import Lookup

REGION = r"[a-z]{2}(-[a-z]+)+-\d"
REGION_KEY = "aws:region"
PackageMistake = Callable[[str], str | None]
"""Path of a node package -> what was wanted of it, None when it is right."""


@dataclass(frozen=True)
class _Given:
    """What is known beside the values."""

    region: str
    lookup: Lookup
    webhook: Any
    webhook_is_secret: bool
    package_mistake: PackageMistake
    endpoints: frozenset[str]
    network_is_given: bool


def read(
    raw: Mapping[str, Any],
    region: str,
    lookup: Lookup,
    webhook: Any = None,
    webhook_is_secret: bool = False,
    package_mistake: PackageMistake = lambda _: None,
    endpoints: frozenset[str] = frozenset(),
    network_is_given: bool = False,
) -> StackSettings:
    """Check all values and return the settings. Raises ConfigError.

    endpoints: URLs of aws:endpoints. network_is_given: a program joins one, so blocks of subnets mean nothing.
    """
    values = Values(raw)
    given = _Given(region, lookup, webhook, webhook_is_secret, package_mistake, endpoints, network_is_given)
    settings = _settings(values, given)
    if values.mistakes:
        raise ConfigError(values.mistakes)
    return settings


def _settings(values: Values, given: _Given) -> StackSettings:
    own = values.section(StackSettings)
    operations.cluster_name(values, _region(values, given.region))
    operations.borders(values)
    facts = nodes.instance_facts(values)
    planned = nodes.read(values, facts)
    eks = values.text("orchestrator") == EKS
    zones_known = facts is not None and not values.refused(REGION_KEY)
    placed = network.read(values, given.lookup, planned if zones_known else None, given.network_is_given)
    settings = StackSettings(
        **own,
        region=given.region,
        orchestrator=access.orchestrator(values),
        network=placed,
        nodes=planned,
        image=kubernetes.image(facts) if eks else nodes.image(values, facts),
        access=access.read(values),
        head=access.head(values, facts.architecture if facts else None),
        kubernetes=kubernetes.read(values, facts),
        storage=storage.read(values, planned),
        notifications=operations.notifications(values, given.webhook, given.webhook_is_secret),
        monitoring=operations.monitoring(values),
        boot=operations.boot(values, given.package_mistake),
        budget=BudgetSettings(**values.section(BudgetSettings)),
        tags=operations.tags(values),
        emulator_endpoint=operations.emulator(values, given.endpoints),
    )
    joining.check(values, settings, given.network_is_given)
    if given.network_is_given or settings.network.vpc_id:
        return settings
    if eks:
        kubernetes.room(values, planned, settings.kubernetes, placed.zones)
    else:
        nodes.room(values, planned, placed.zones)
    return settings


def _region(values: Values, region: str) -> str:
    """The region, empty when it is a mistake."""
    if re.fullmatch(REGION, region):
        return region
    values.refuse(REGION_KEY, "an AWS region: `pulumi config set aws:region us-east-1`", region)
    return ""
