"""GPU nodes have no public address."""

from typing import Iterator

from flightline.contract import ROLE_GPU, TAG_ROLE

from .model import UNKNOWN, Answer, Broken, PolicyContext, Registered, Rule, Unsure
from .values import items, look, require, truth

_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
_INSTANCE = "aws:ec2/instance:Instance"


def check(resource: Registered, site: PolicyContext) -> Iterator[Answer]:
    """Launch templates, which are all of GPU nodes, and single instances with their role."""
    if resource.type_ == _TEMPLATE:
        yield from _template(resource)
    if resource.type_ == _INSTANCE:
        tags = look(resource.props, "tags")
        if tags is UNKNOWN or (tags or {}).get(TAG_ROLE) in (ROLE_GPU, UNKNOWN):
            yield from require(resource.props, "associatePublicIpAddress", False)


def _template(resource: Registered) -> Iterator[Answer]:
    """The primary interface says no, for else its subnet decides; the others say nothing else."""
    interfaces = items(resource.props, "networkInterfaces")
    if not interfaces:
        yield Broken("networkInterfaces is not set; the subnet would decide about a public address")
    for number, interface in enumerate(interfaces):
        public = truth(look(interface, "associatePublicIpAddress"))
        if public is UNKNOWN:
            yield Unsure(f"networkInterfaces[{number}].associatePublicIpAddress is known only during the update")
        elif public or (public is None and number == 0):
            seen = "not set" if public is None else "true"
            yield Broken(f"networkInterfaces[{number}].associatePublicIpAddress is {seen}; false is wanted")


RULE = Rule("public-address", "A training node needs no way in from the internet.", check)
