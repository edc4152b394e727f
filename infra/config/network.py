"""VPC, subnets, NAT and the availability zone."""

from __future__ import annotations

import re

from infra.config.draft import Draft
from infra.config.model import Network, Zones
from infra.planning import subnets
from infra.planning.instance_types import CAPACITY_BLOCK, RESERVATION
from infra.planning.zones import Lookup, choose

NATS = (subnets.NAT_ONE, subnets.NAT_PER_AZ, subnets.NAT_NONE)
SUBNETS_PER_KIND = 2
ZONE = r"[a-z]{2}(-[a-z]+)+-\d(-[a-z]+-\d)?[a-z]|[a-z]{3,5}\d(-[a-z]+\d)?-az\d+"
BOUGHT_IN_A_ZONE = (RESERVATION, CAPACITY_BLOCK)
PACKAGE_SOURCES = ("internet", "image", "mirror")
_NO_ZONES = Zones(("", ""), ("", ""))


def read(draft: Draft, lookup: Lookup, type_known: bool) -> Network:
    """The network's settings. type_known False: the instance type is a mistake itself, so no zone is looked for."""
    public, private = draft.items("publicSubnetCidrs"), draft.items("privateSubnetCidrs")
    _blocks(draft, public, private)
    nat = draft.one_of("natGateways", NATS)
    endpoints = draft.flag("interfaceEndpoints")
    if nat == subnets.NAT_NONE and not endpoints:
        draft.refuse(
            "natGateways",
            "one or per-az, or interfaceEndpoints true: with neither, nodes reach neither Systems Manager nor "
            "Auto Scaling, and none would ever enter service",
        )
    else:
        _packages(draft, nat)
    return Network(
        zones=_zones(draft, lookup) if type_known else _NO_ZONES,
        vpc_cidr=draft.text("vpcCidr"),
        public_cidrs=public,
        private_cidrs=private,
        nat=nat,
        interface_endpoints=endpoints,
        flow_logs=draft.flag("flowLogs"),
    )


def _packages(draft: Draft, nat: str) -> None:
    """The roles install packages: without a way out they must come from somewhere else, or no node is configured."""
    source = draft.one_of("packageSource", PACKAGE_SOURCES)
    if nat == subnets.NAT_NONE and source == PACKAGE_SOURCES[0]:
        draft.refuse(
            "packageSource",
            "image (with ami, an image to which the roles were applied) or mirror (repositories inside your network, "
            "named in inventory/group_vars/aws_ec2/site.yml), or natGateways one: without NAT there is no internet",
        )
    if source == "image" and not draft.text("ami"):
        draft.refuse("packageSource", "an image of your own in ami: AWS' image lacks DCGM and the agents; or internet")


def _blocks(draft: Draft, public: tuple[str, ...], private: tuple[str, ...]) -> None:
    vpc = draft.text("vpcCidr")
    wanted = subnets.vpc_mistake(vpc)
    if wanted:
        draft.refuse("vpcCidr", wanted)
    for name, blocks in (("publicSubnetCidrs", public), ("privateSubnetCidrs", private)):
        if len(blocks) != SUBNETS_PER_KIND:
            draft.refuse(name, "two blocks, one for each availability zone")
    for position, block, wanted in subnets.subnet_mistakes(vpc, (*public, *private)):
        draft.refuse("publicSubnetCidrs" if position < len(public) else "privateSubnetCidrs", wanted, block)


def _zones(draft: Draft, lookup: Lookup) -> Zones:
    zone = draft.text("availabilityZone")
    bought = draft.text("capacityType")
    if not zone and bought in BOUGHT_IN_A_ZONE:
        draft.refuse(
            "availabilityZone",
            f"the zone of the {bought}, where alone its instances start: `aws ec2 describe-capacity-reservations`",
        )
        return _NO_ZONES
    if zone and not re.fullmatch(ZONE, zone):
        draft.refuse("availabilityZone", "a zone name such as us-east-1a, a zone id such as use1-az4, or nothing")
        return _NO_ZONES
    instance_type = draft.text("gpuInstanceType")
    try:
        offer = lookup(instance_type)
        chosen = choose(zone or None, instance_type, offer)
    except ValueError as error:
        draft.refuse("availabilityZone", str(error))
        return _NO_ZONES
    if draft.number("spotZones") == 2 and offer.offering is not None and chosen.ids[1] not in offer.offering:
        draft.refuse("spotZones", f"1: only {chosen.gpu_name} of the region offers {instance_type}")
    return chosen
