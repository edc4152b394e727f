"""All manifests of a site as files, in the order in which they are applied. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import yaml

from . import agent, control, monitoring, namespaces, rights, serving, training
from .objects import Manifest
from .site import KubeSite

PARTS: Mapping[str, Callable[[KubeSite], list[Manifest]]] = {
    "namespaces": namespaces.manifests,
    "rights": lambda site: rights.manifests(),
    "agent": agent.manifests,
    "control": control.manifests,
    "training": training.manifests,
    "serving": serving.manifests,
    "monitoring": lambda site: monitoring.manifests(),
}
"""Name of a part, and of its file -> what is in it. The policies stand before the agent that they bind."""


def parts(site: KubeSite, only: tuple[str, ...] = ()) -> dict[str, list[Manifest]]:
    """The parts that have something, or those of them that are named."""
    found = {name: make(site) for name, make in PARTS.items() if not only or name in only}
    return {name: objects for name, objects in found.items() if objects}


def text(objects: list[Manifest]) -> str:
    """YAML documents."""
    return yaml.safe_dump_all(objects, sort_keys=False, width=120, explicit_start=True)
