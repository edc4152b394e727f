"""Instances answer metadata requests with a session token only (IMDSv2)."""

from typing import Iterator

from .model import Answer, PolicyContext, Registered, Rule
from .values import require

INSTANCES = ("aws:ec2/launchTemplate:LaunchTemplate", "aws:ec2/instance:Instance")


def check(resource: Registered, site: PolicyContext) -> Iterator[Answer]:
    """Launch templates and single instances."""
    if resource.type_ in INSTANCES:
        yield from require(resource.props, "metadataOptions.httpTokens", "required")


RULE = Rule("imdsv2", "Without tokens a forged request to a service on the node hands out the node's role.", check)
