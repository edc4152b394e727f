"""Every IAM document of a stack, and a small judge of what a role may do."""

import fnmatch
from collections.abc import Iterable, Mapping
from typing import Any

from infra.planning import iam
from infra.planning.names import FUNCTIONS
from tests.infra.stacks import place, planned_names, settings

KEY_ARN = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
ROLES = ("node", "head", *FUNCTIONS)


def roles(stack: str, slack: bool = True) -> dict[str, dict[str, iam.Document]]:
    """Role -> purpose -> document. slack: with a webhook's secret."""
    found = settings(stack)
    slack = slack or found.notifications.slack
    names, where = planned_names(stack), place(stack)
    return {
        "node": iam.node_policies(found.storage.s3_express, names, where, KEY_ARN),
        "head": iam.head_policies(slack, names, where, KEY_ARN),
        **{name: iam.function_policies(name, slack, names, where, KEY_ARN) for name in FUNCTIONS},
    }


def kubernetes_roles(stack: str) -> dict[str, dict[str, iam.Document]]:
    """Role of an EKS cluster -> purpose -> document, with everything that a stack may have."""
    return iam.kubernetes_policies(True, True, planned_names(stack), place(stack), KEY_ARN)


def statements(documents: Iterable[iam.Document]) -> list[Mapping[str, Any]]:
    """Every statement."""
    return [statement for document in documents for statement in document["Statement"]]


def allowed(documents: Iterable[iam.Document], action: str, resource: str | None = None) -> bool:
    """Whether some statement allows the action, on the resource where one is given. Conditions are not judged."""
    return any(
        statement["Effect"] == "Allow"
        and action in statement["Action"]
        and (resource is None or any(fnmatch.fnmatchcase(resource, pattern) for pattern in statement["Resource"]))
        for statement in statements(documents)
    )
