"""What components share: options of children, and documents as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pulumi


def child(parent: pulumi.Resource, **options: Any) -> pulumi.ResourceOptions:
    """Options of a component's child."""
    return pulumi.ResourceOptions(parent=parent, **options)


def data(parent: pulumi.Resource, keep: bool, **options: Any) -> pulumi.ResourceOptions:
    """Options of a child that holds data: while it is to be kept, Pulumi neither replaces nor deletes it."""
    return pulumi.ResourceOptions(parent=parent, protect=keep, retain_on_delete=keep, **options)


def text(document: Mapping[str, Any]) -> str:
    """A policy document as JSON, the same text on every run."""
    return json.dumps(document, sort_keys=True)


def named(tags: Mapping[str, str], name: str) -> dict[str, str]:
    """Tags with the Name that consoles show."""
    return {**tags, "Name": name}
