"""The example stacks as values, and an AWS that answers without AWS."""

from pathlib import Path
from typing import Any

import yaml

from infra.components.base import ClusterPlan
from infra.config.model import StackSettings
from infra.config.reader import read
from infra.images import FoundImage
from infra.planning.joining import cluster_names
from infra.planning.names import Names, Place
from infra.planning.zones import Zone, ZoneOffering
from infra.settings import endpoints

ROOT = Path(__file__).resolve().parents[2]
STACKS = ("dev", "p5-reservation", "p5en-capacity-block", "spot", "local", "eks")
ACCOUNT = "123456789012"
PREFIX = "flightline:"
ZONE_LETTERS = "abc"
LETTERED = tuple(enumerate(ZONE_LETTERS, 1))
_SHORT = {"east": "e", "west": "w", "north": "n", "south": "s", "central": "c"}


def config(stack: str) -> dict[str, Any]:
    """A stack file's configuration with its namespaces."""
    loaded: dict[str, Any] = yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text())["config"]
    return loaded


def values(stack: str) -> dict[str, Any]:
    """The project's own keys of a stack file, without their namespace."""
    return {key.removeprefix(PREFIX): value for key, value in config(stack).items() if key.startswith(PREFIX)}


def region(stack: str) -> str:
    """The stack's region."""
    return str(config(stack)["aws:region"])


def _short(in_region: str) -> str:
    """How zone ids begin: us-east-1 is use1, us-west-2 usw2 (AWS RAM user guide, "Availability Zone IDs")."""
    country, side, number = in_region.split("-")
    return f"{country}{_SHORT[side]}{number}"


def offer(in_region: str, offering: tuple[str, ...] | None = None) -> ZoneOffering:
    """Three zones of a region; all of them offer the type unless their letters are given."""
    zones = tuple(Zone(f"{in_region}{letter}", f"{_short(in_region)}-az{number}") for number, letter in LETTERED)
    letters = ZONE_LETTERS if offering is None else offering
    return ZoneOffering(zones, frozenset(zone.zone_id for zone in zones if zone.name[-1] in letters))


def settings(stack: str, **changes: Any) -> StackSettings:
    """Settings of an example stack with some keys changed."""
    where = region(stack)
    given = endpoints(config(stack).get("aws:endpoints", []))
    return read({**values(stack), **changes}, where, lambda _: offer(where), endpoints=given)


def place(stack: str) -> Place:
    """Where a stack lives."""
    return Place("aws", region(stack), ACCOUNT)


def plan(stack: str, image: FoundImage | None = None, **changes: Any) -> ClusterPlan:
    """What the components of an example stack read, with some keys changed."""
    found, where = settings(stack, **changes), place(stack)
    return ClusterPlan(found, stack, cluster_names(found, where), where, image)


def planned_names(stack: str) -> Names:
    """Physical names of a stack."""
    return plan(stack).names
