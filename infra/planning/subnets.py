"""Subnets of a VPC."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

from infra.config.model import NAT_NONE, NAT_PER_AZ, NetworkSettings

PREFIXES = range(16, 29)
"""Sizes that EC2 takes for a VPC and for a subnet."""

PRIVATE_RANGES = tuple(
    IPv4Network(block) for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
)
"""RFC 1918 and RFC 6598: what a VPC can use without hiding a part of the internet."""

RESERVED_ADDRESSES = 5
"""EC2 keeps the first four addresses of a subnet and the last one."""


@dataclass(frozen=True)
class Subnet:
    """One subnet. name: "public-1"; zone: availability zone name; zone_index: of that zone in the network's."""

    name: str
    cidr: str
    zone: str
    zone_index: int
    public: bool


def plan(network: NetworkSettings) -> tuple[Subnet, ...]:
    """Public subnets, then private ones, alternating over the zones."""
    return tuple(_subnets(network, public=True)) + tuple(_subnets(network, public=False))


def _subnets(network: NetworkSettings, public: bool) -> Iterator[Subnet]:
    kind = "public" if public else "private"
    for index, cidr in enumerate(network.public_cidrs if public else network.private_cidrs):
        zone_index = index % len(network.zones.names)
        yield Subnet(f"{kind}-{index + 1}", cidr, network.zones.names[zone_index], zone_index, public)


def gpu_subnets(network: NetworkSettings) -> tuple[Subnet, ...]:
    """The private subnets that GPU nodes are launched into."""
    return tuple(subnet for subnet in plan(network) if not subnet.public and subnet.zone_index in network.zones.nodes)


def nat_zones(network: NetworkSettings) -> tuple[int, ...]:
    """Zone indexes that get a NAT gateway: the first, all or none."""
    if network.nat == NAT_NONE:
        return ()
    zones = {subnet.zone_index for subnet in plan(network)}
    return tuple(sorted(zones)) if network.nat == NAT_PER_AZ else (0,)


def nat_for(network: NetworkSettings, zone_index: int) -> int | None:
    """Zone index of the NAT gateway that a private subnet in this zone routes to; None without NAT."""
    gateways = nat_zones(network)
    if not gateways:
        return None
    return zone_index if zone_index in gateways else gateways[0]


def addresses(cidr: str) -> int:
    """Addresses of a subnet that instances can have."""
    return IPv4Network(cidr).num_addresses - RESERVED_ADDRESSES


def nth(number: int) -> str:
    """The word for a block's place."""
    return ("first", "second", "third", "fourth", "fifth", "sixth")[number] if number < 6 else f"{number + 1}th"


def parse(text: str) -> IPv4Network:
    """A CIDR block. Raises ValueError with what was wanted."""
    try:
        return IPv4Network(text)
    except ValueError as error:
        if "host bits set" in str(error):
            raise ValueError(f"the block's first address: {IPv4Network(text, strict=False)}") from None
        raise ValueError("an IPv4 block such as 10.0.0.0/16") from None


def private(block: IPv4Network) -> bool:
    """Whether a block lies in one of the private ranges."""
    return any(block.subnet_of(one) for one in PRIVATE_RANGES)


def vpc_mistake(cidr: str) -> str | None:
    """What was wanted of the VPC's block, None when it is right."""
    try:
        block = parse(cidr)
    except ValueError as error:
        return str(error)
    if block.prefixlen not in PREFIXES:
        return "a block of size /16 to /28"
    if not private(block):
        return f"a block inside one of {', '.join(map(str, PRIVATE_RANGES))}"
    return None


def subnet_mistakes(vpc_cidr: str, cidrs: Sequence[str]) -> list[tuple[int, str, str]]:
    """(position, block, what was wanted) of each subnet that is malformed, outside the VPC or overlapping another."""
    vpc = None if vpc_mistake(vpc_cidr) else parse(vpc_cidr)
    found: list[tuple[int, str, str]] = []
    blocks: list[IPv4Network] = []
    for position, cidr in enumerate(cidrs):
        try:
            block = parse(cidr)
        except ValueError as error:
            found.append((position, cidr, str(error)))
            continue
        found += [(position, cidr, f"a block apart from {other}") for other in blocks if other.overlaps(block)]
        blocks.append(block)
        if block.prefixlen not in PREFIXES:
            found.append((position, cidr, "a block of size /16 to /28"))
        elif vpc is not None and not block.subnet_of(vpc):
            found.append((position, cidr, f"a block inside the VPC's {vpc}"))
    return found
