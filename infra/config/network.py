"""VPC, subnets, NAT and the availability zone."""

from infra.config.model import EKS, NAT_NONE, NetworkSettings, NodesSettings, ZoneSettings
from infra.config.values import Values
from infra.planning import subnets
from infra.planning.instance_types import CAPACITY_BLOCK, RESERVATION
from infra.planning.zones import Lookup, choose

FEWEST_ZONES = 2
BOUGHT_IN_A_ZONE = (RESERVATION, CAPACITY_BLOCK)
_NO_ZONES = ZoneSettings(("", ""), ("", ""))


def read(values: Values, lookup: Lookup, nodes: NodesSettings | None, joined: bool = False) -> NetworkSettings:
    """The network's settings. nodes None: their type or the region is a mistake itself, so no zone is looked for.

    joined: a program has a network already.
    """
    zones = _zones(values, lookup, nodes) if nodes else _NO_ZONES
    given = NetworkSettings(zones=zones, **values.section(NetworkSettings))
    if not joined and not given.vpc_id:
        _blocks(values, given)
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


def _blocks(values: Values, given: NetworkSettings) -> None:
    vpc, public, private = values.text("vpcCidr"), given.public_cidrs, given.private_cidrs
    wanted = subnets.vpc_mistake(vpc)
    if wanted:
        values.refuse("vpcCidr", wanted)
    for name, blocks in (("publicSubnetCidrs", public), ("privateSubnetCidrs", private)):
        if len(blocks) != len(given.zones.names):
            values.refuse(name, f"{len(given.zones.names)} blocks, one for each availability zone")
    for position, block, wanted in subnets.subnet_mistakes(vpc, (*public, *private)):
        values.refuse("publicSubnetCidrs" if position < len(public) else "privateSubnetCidrs", wanted, block)


def _zones(values: Values, lookup: Lookup, nodes: NodesSettings) -> ZoneSettings:
    named: tuple[str, ...] = values.checked("availabilityZones")
    bought, ordered = nodes.capacity, [way.zone for way in nodes.capacity.ways if way.zone]
    if not named and not ordered and bought.kind in BOUGHT_IN_A_ZONE:
        values.refuse(
            "availabilityZones",
            f"the zone of the {bought.kind}, where alone its instances start: `aws ec2 describe-capacity-reservations`",
        )
    if values.refused("availabilityZones", "capacityOrder"):
        return _NO_ZONES
    wanted = named or tuple(dict.fromkeys(ordered))
    if outside := [zone for zone in ordered if zone not in wanted]:
        values.refuse(
            "capacityOrder", f"zones of availabilityZones, as they stand there: {', '.join(wanted)}", outside[0]
        )
        return _NO_ZONES
    alone = bool(nodes.together) or bought.kind in BOUGHT_IN_A_ZONE
    several = not alone and (len(wanted) > 1 or nodes.spot.zones > 1)
    try:
        offer = lookup(nodes.instance_type)
        chosen = choose(wanted, nodes.instance_type, offer, several=several, bought_in=bought.zone)
    except ValueError as error:
        values.refuse("availabilityZones", str(error))
        return _NO_ZONES
    if several and not wanted[1:] and len(chosen.nodes) < FEWEST_ZONES:
        values.refuse("spotZones", f"1: only {chosen.gpu_name} of the region offers {nodes.instance_type}")
    home = (chosen.names[0], chosen.ids[0])
    if values.flag("fsxEfa") and any(zone not in home for zone in (*ordered, chosen.gpu_name)):
        values.refuse("fsxEfa", f"false, or nodes there in every way: EFA to FSx stays inside its zone, {home[0]}")
    return chosen
