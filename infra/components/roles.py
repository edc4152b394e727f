"""Inline policies of a role, one per purpose, from the planned documents."""

from collections.abc import Callable, Mapping

import pulumi

from infra.planning import iam

from .base import text

_ANY_KEY = "arn:aws:kms:us-east-1:000000000000:key/00000000-0000-0000-0000-000000000000"


def by_purpose(
    key_arn: pulumi.Input[str], documents: Callable[[str], Mapping[str, iam.Document]]
) -> dict[str, pulumi.Input[str]]:
    """Policies that may name the key of the alerts. Which there are is known before it is."""

    def writer(purpose: str) -> Callable[[str], str]:
        return lambda arn: text(documents(arn)[purpose])

    return {purpose: pulumi.Output.from_input(key_arn).apply(writer(purpose)) for purpose in documents(_ANY_KEY)}
