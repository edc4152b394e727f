"""The shapes that every manifest has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..contract import KUBE_NAMESPACE

Manifest = dict[str, Any]
PART_OF = {"app.kubernetes.io/part-of": "flightline", "app.kubernetes.io/managed-by": "flightline"}


def manifest(
    api: str, kind: str, name: str, body: Mapping[str, Any], namespace: str | None = KUBE_NAMESPACE, **metadata: Any
) -> Manifest:
    """One object. namespace: None for what belongs to the whole cluster."""
    labels = {**PART_OF, "app.kubernetes.io/name": name.split(".")[0][:63], **metadata.pop("labels", {})}
    held = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name, **held, "labels": labels, **metadata},
        **body,
    }
