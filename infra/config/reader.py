"""From a stack's raw values to its settings: pure, and every mistake at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from infra.config import access, network, nodes, operations, storage
from infra.config.draft import Draft
from infra.config.errors import ConfigError
from infra.config.model import Settings
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


def read(
    raw: Mapping[str, Any],
    region: str,
    lookup: Lookup,
    webhook: Any = None,
    webhook_is_secret: bool = False,
    package_mistake: PackageMistake = lambda _: None,
    endpoints: frozenset[str] = frozenset(),
) -> Settings:
    """Check all values and return the settings. endpoints: URLs of aws:endpoints. Raises ConfigError."""
    draft = Draft(raw)
    settings = _settings(draft, _Given(region, lookup, webhook, webhook_is_secret, package_mistake, endpoints))
    if draft.mistakes:
        raise ConfigError(draft.mistakes)
    return settings


def _settings(draft: Draft, given: _Given) -> Settings:
    name = operations.cluster_name(draft, _region(draft, given.region))
    facts = nodes.instance_facts(draft)
    planned = nodes.read(draft, facts)
    zones_known = facts is not None and not draft.refused(REGION_KEY)
    settings = Settings(
        cluster_name=name,
        region=given.region,
        orchestrator=access.orchestrator(draft),
        network=network.read(draft, given.lookup, type_known=zones_known),
        nodes=planned,
        image=nodes.image(draft, facts),
        access=access.read(draft),
        head=access.head(draft, facts.architecture if facts else None),
        storage=storage.read(draft, planned),
        notifications=operations.notifications(draft, given.webhook, given.webhook_is_secret),
        monitoring=operations.monitoring(draft),
        boot=operations.boot(draft, given.package_mistake),
        budget=operations.budget(draft),
        audit_trail=draft.flag("auditTrail"),
        tags=operations.tags(draft),
        permissions_boundary=operations.permissions_boundary(draft),
        emulator_endpoint=operations.emulator(draft, given.endpoints),
    )
    nodes.room(draft, planned)
    return settings


def _region(draft: Draft, region: str) -> str:
    """The region, empty when it is a mistake."""
    if re.fullmatch(REGION, region):
        return region
    draft.refuse(REGION_KEY, "an AWS region: `pulumi config set aws:region us-east-1`", region)
    return ""
