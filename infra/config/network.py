"""VPC, subnets, NAT and the availability zone."""

from infra.config.model import EKS, NAT_NONE, NetworkSettings, ZoneSettings
from infra.config.values import Values
from infra.planning import subnets
from infra.planning.instance_types import CAPACITY_BLOCK, RESERVATION
from infra.planning.zones import Lookup, choose

SUBNETS_PER_KIND = 2
BOUGHT_IN_A_ZONE = (RESERVATION, CAPACITY_BLOCK)
_NO_ZONES = ZoneSettings(("", ""), ("", ""))


def read(values: Values, lookup: Lookup, type_known: bool) -> NetworkSettings:
    """The network's settings. type_known False: the instance type is a mistake itself, so no zone is looked for."""
    given = NetworkSettings(
        zones=_zones(values, lookup) if type_known else _NO_ZONES, **values.section(NetworkSettings)
    )
    _blocks(values, given.public_cidrs, given.private_cidrs)
    if given.nat == NAT_NONE and not given.interface_endpoints:
        values.refuse(
            "natGateways",
            "one or per-az, or interfaceEndpoints true: with neither, nodes reach neither Systems Manager nor "
            "CloudWatch, and nobody reaches them",
        )
    elif values.text("orchestrator") != EKS:
        _packages(values, given)
    return given


def _packages(values: Values, given: NetworkSettings) -> None:
    """The roles install packages: without a way out they must come from somewhere else, or no node is configured."""
    if given.nat == NAT_NONE and given.package_source == "internet":
        values.refuse(
            "packageSource",
            "image (with ami, an image to which the roles were applied) or mirror (repositories inside your network, "
            "named in inventory/group_vars/aws_ec2/site.yml), or natGateways one: without NAT there is no internet",
        )
    if given.package_source == "image" and not values.text("ami"):
        values.refuse("packageSource", "an image of your own in ami: AWS' image lacks DCGM and the agents; or internet")


def _blocks(values: Values, public: tuple[str, ...], private: tuple[str, ...]) -> None:
    vpc = values.text("vpcCidr")
    wanted = subnets.vpc_mistake(vpc)
    if wanted:
        values.refuse("vpcCidr", wanted)
    for name, blocks in (("publicSubnetCidrs", public), ("privateSubnetCidrs", private)):
        if len(blocks) != SUBNETS_PER_KIND:
            values.refuse(name, "two blocks, one for each availability zone")
    for position, block, wanted in subnets.subnet_mistakes(vpc, (*public, *private)):
        values.refuse("publicSubnetCidrs" if position < len(public) else "privateSubnetCidrs", wanted, block)


def _zones(values: Values, lookup: Lookup) -> ZoneSettings:
    zone = values.text("availabilityZone")
    bought = values.text("capacityType")
    if not zone and bought in BOUGHT_IN_A_ZONE:
        values.refuse(
            "availabilityZone",
            f"the zone of the {bought}, where alone its instances start: `aws ec2 describe-capacity-reservations`",
        )
        return _NO_ZONES
    values.checked("availabilityZone")
    if values.refused("availabilityZone"):
        return _NO_ZONES
    instance_type = values.text("gpuInstanceType")
    try:
        offer = lookup(instance_type)
        chosen = choose(zone or None, instance_type, offer)
    except ValueError as error:
        values.refuse("availabilityZone", str(error))
        return _NO_ZONES
    if values.number("spotZones") == 2 and offer.offering is not None and chosen.ids[1] not in offer.offering:
        values.refuse("spotZones", f"1: only {chosen.gpu_name} of the region offers {instance_type}")
    return chosen
