"""Policies: what no resource of any stack may break. Each is a file; `RULES` lists them.

They are pure functions over (type token, logical name, properties). Tests run them over every resource of every
example stack; `infra.guard` runs them inside `pulumi preview` and `pulumi up`.
"""

from typing import Iterator, Tuple

from . import (
    cluster_access,
    data_export,
    data_protection,
    encryption,
    imdsv2,
    known_type,
    locks,
    log_retention,
    open_ingress,
    pass_role,
    pinned_charts,
    public_address,
    public_bucket,
    secrets,
    tags,
    unproven_nodes,
)
from .model import UNKNOWN, Broken, PolicyContext, PolicyFinding, Registered, Rule, Unknown, Unsure

__all__ = ["RULES", "UNKNOWN", "Broken", "PolicyContext", "PolicyFinding", "Registered", "Rule", "Unknown", "Unsure"]

RULES: Tuple[Rule, ...] = (
    open_ingress.RULE,
    encryption.RULE,
    imdsv2.RULE,
    public_bucket.RULE,
    public_address.RULE,
    pass_role.RULE,
    data_protection.RULE,
    data_export.RULE,
    locks.RULE,
    tags.RULE,
    log_retention.RULE,
    secrets.RULE,
    cluster_access.RULE,
    unproven_nodes.RULE,
    pinned_charts.RULE,
    known_type.RULE,
)


def judge(resource: Registered, site: PolicyContext) -> Iterator[PolicyFinding]:
    """Every rule over one resource."""
    for rule in RULES:
        for answer in rule.check(resource, site):
            yield PolicyFinding(rule.id, resource.title, answer)


def judge_stack(resources: Tuple[Registered, ...]) -> Iterator[PolicyFinding]:
    """The rules that need all resources together."""
    for rule in RULES:
        for resource, answer in rule.check_stack(resources):
            yield PolicyFinding(rule.id, resource.title, answer)
