"""What the provider's SDK says about a resource type."""

import importlib
import inspect
from functools import lru_cache
from typing import Any

_KUBERNETES = {
    "kubernetes:helm.sh/v3:Release": "pulumi_kubernetes.helm.v3",
    "pulumi:providers:kubernetes": "pulumi_kubernetes.provider",
}
"""The few types of a cluster that the program makes. A provider's class is not named by its token."""

_MODULE_NAMES = {"lambda": "lambda_"}
"""Modules whose name is a Python keyword."""


@lru_cache(maxsize=512)
def resource_class(token: str) -> Any:
    """The SDK's class of a type token such as "aws:ec2/vpc:Vpc"; None when there is none."""
    package, path, name = token.split(":")
    if token in _KUBERNETES:
        return getattr(importlib.import_module(_KUBERNETES[token]), "Provider" if package == "pulumi" else name)
    if package != "aws":
        return None
    module = path.split("/", 1)[0]
    return getattr(importlib.import_module(f"pulumi_aws.{_MODULE_NAMES.get(module, module)}"), name, None)


@lru_cache(maxsize=512)
def taggable(token: str) -> bool:
    """Whether the type takes tags."""
    found = resource_class(token) if token.startswith("aws:") else None
    return found is not None and "tags" in inspect.signature(found._internal_init).parameters
