"""No rule lets the whole internet in."""

import ipaddress
from typing import Any, Iterator, List

from .model import UNKNOWN, Answer, Broken, PolicyContext, Registered, Rule, Unsure
from .values import items, look, truth

WIDEST_PREFIX = 8
"""A shorter prefix is the internet in disguise: 0.0.0.0/1 and 128.0.0.0/1 together are everybody."""

_CLUSTER = "aws:eks/cluster:Cluster"
_GROUPS = ("aws:ec2/securityGroup:SecurityGroup", "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup")


def check(resource: Registered, site: PolicyContext) -> Iterator[Answer]:
    """Every source range of every ingress rule; a list of ranges kept elsewhere can hold any."""
    for prefix_list in _prefix_lists(resource):
        yield Broken(f"ingress from the prefix list {prefix_list}, which nobody here sees into; name the ranges")
    if resource.type_ == _CLUSTER:
        yield from _endpoint(resource)
    for cidr in _sources(resource):
        if cidr is UNKNOWN:
            yield Unsure("an ingress source is known only during the update")
        elif _too_wide(str(cidr)):
            yield Broken(f"ingress from {cidr}; name the ranges that need it (prefix /{WIDEST_PREFIX} or longer)")


def _endpoint(resource: Registered) -> Iterator[Answer]:
    """The API's public endpoint: without ranges EKS takes the world."""
    public = truth(look(resource.props, "vpcConfig.endpointPublicAccess"))
    if public is UNKNOWN:
        yield Unsure("vpcConfig.endpointPublicAccess is known only during the update")
    elif public is None:
        yield Broken(
            "vpcConfig.endpointPublicAccess is not set, and EKS' default is true; say false, or name the ranges"
        )
    elif public and not items(resource.props, "vpcConfig.publicAccessCidrs"):
        yield Broken("the public endpoint has no publicAccessCidrs, and EKS' default is the world; name the ranges")


def _sources(resource: Registered) -> List[Any]:
    props = resource.props
    if resource.type_ in _GROUPS:
        return [cidr for rule in items(props, "ingress") for cidr in _of_rule(rule)]
    if resource.type_ == "aws:ec2/securityGroupRule:SecurityGroupRule" and props.get("type") != "egress":
        return _of_rule(props)
    if resource.type_ == "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule":
        return items(props, "cidrIpv4") + items(props, "cidrIpv6")
    if resource.type_ == _CLUSTER:
        return items(props, "vpcConfig.publicAccessCidrs")
    return []


def _prefix_lists(resource: Registered) -> List[Any]:
    props = resource.props
    if resource.type_ in _GROUPS:
        rules = [rule for rule in items(props, "ingress") if rule is not UNKNOWN]
        return [one for rule in rules for one in items(rule, "prefixListIds")]
    if resource.type_ == "aws:ec2/securityGroupRule:SecurityGroupRule" and props.get("type") != "egress":
        return items(props, "prefixListIds")
    if resource.type_ == "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule":
        return items(props, "prefixListId")
    return []


def _of_rule(rule: Any) -> List[Any]:
    return [UNKNOWN] if rule is UNKNOWN else items(rule, "cidrBlocks") + items(rule, "ipv6CidrBlocks")


def _too_wide(cidr: str) -> bool:
    try:
        return ipaddress.ip_network(cidr, strict=False).prefixlen < WIDEST_PREFIX
    except ValueError:
        return True


RULE = Rule("open-ingress", "A node that answers the internet is found within minutes.", check)
