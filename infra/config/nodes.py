"""GPU nodes: type, count, capacity, placement, image."""

import re

from infra.config import capacity, scaling
from infra.config.model import AMI_ID, ImageSettings, NodesSettings, ZoneSettings
from infra.config.values import Values
from infra.planning import subnets
from infra.planning.instance_types import CAPACITY_BLOCK, ON_DEMAND, RESERVATION, NetworkFacts, facts

MOST_NODES = 5000
OTHER_ADDRESSES = 16
"""Addresses of the GPU subnet that FSx, interface endpoints and the head node take."""

CLOSED_DRIVER = ("p3dn.",)
"""Volta: NVIDIA's open kernel modules begin with Turing."""

GROUP_NAME = r"[A-Za-z0-9_.-]{1,255}"
# AWS Deep Learning AMIs and the Neuron AMI by their public parameters (DLAMI and Neuron guides, 2026).
GPU_IMAGE = "/aws/service/deeplearning/ami/{}/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"
NEURON_IMAGE = "/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id"


def instance_facts(values: Values) -> NetworkFacts | None:
    """Facts of the GPU instance type; None when it is a mistake."""
    try:
        return facts(values.text("gpuInstanceType"))
    except ValueError as error:
        values.refuse("gpuInstanceType", str(error))
        return None


def read(values: Values, known: NetworkFacts | None) -> NodesSettings:
    """The nodes' settings."""
    maximum = most_nodes(values)
    bought = capacity.read(values, known, maximum)
    efa = _efa(values, known)
    # A group scaled to zero is planned like the one that it was: its template and placement group stay what they are.
    several = efa and maximum != 1
    for way in bought.ways:
        _placement(values, way.kind, multi_node_fabric=several)
    create, group = _placement(values, bought.kind, multi_node_fabric=several)
    together = scaling.together(values, several, create or group is not None)
    return NodesSettings(
        **values.section(NodesSettings),
        maximum=maximum,
        capacity=bought,
        efa=efa,
        create_placement_group=create,
        placement_group=group,
        spot=scaling.spot(values, known, bought, efa, together),
        together=together,
        scaling=scaling.scaling(values, known, maximum),
    )


def most_nodes(values: Values) -> int:
    """The most nodes; the three numbers are checked against each other."""
    count, minimum = values.number("gpuNodeCount"), values.number("gpuNodeMinimum")
    maximum = values.number("gpuNodeMaximum") or count
    if not 0 <= count <= MOST_NODES:
        values.refuse("gpuNodeCount", f"0 (the group without nodes) to {MOST_NODES}")
    elif count < minimum:
        values.refuse("gpuNodeCount", f"at least gpuNodeMinimum, {minimum}")
    if minimum < 0:
        values.refuse("gpuNodeMinimum", "0 or more")
    if not values.refused("gpuNodeCount") and not count <= maximum <= MOST_NODES:
        values.refuse("gpuNodeMaximum", f"0 (as many as gpuNodeCount), or gpuNodeCount ({count}) to {MOST_NODES}")
    return maximum


def room(values: Values, nodes: NodesSettings, zones: ZoneSettings) -> None:
    """Refuse a GPU subnet without an address for every node (EFA-only interfaces take none)."""
    if values.refused("privateSubnetCidrs", "vpcCidr", "gpuNodeCount", "gpuNodeMaximum"):
        return
    wanted = nodes.maximum + OTHER_ADDRESSES
    why = f"{nodes.maximum} nodes and what serves them"
    for number, block in enumerate(values.items("privateSubnetCidrs")):
        if number in zones.nodes and subnets.addresses(block) < wanted:
            values.refuse("privateSubnetCidrs", f"a {subnets.nth(number)} block with {wanted} addresses: {why}", block)


def _efa(values: Values, known: NetworkFacts | None) -> bool:
    choice = values.checked("efa")
    if known is None or choice == "off":
        return False
    if choice == "on" and not known.efa_count:
        values.refuse("efa", f"auto or off: {known.instance_type} has no EFA")
    return known.efa_count > 0


def _placement(values: Values, kind: str, multi_node_fabric: bool) -> tuple[bool, str | None]:
    choice = values.text("placementGroup")
    if choice == "none":
        return False, None
    if choice == "auto":
        # A reservation made outside a group cannot be used inside one (eksctl-io/eksctl 7949), so none is made for it.
        return multi_node_fabric and kind in (ON_DEMAND, "spot"), None
    if kind == CAPACITY_BLOCK:
        values.refuse("placementGroup", "auto or none: AWS places the instances of a capacity block together itself")
    elif choice == "cluster" and kind == RESERVATION:
        values.refuse(
            "placementGroup", "auto, none, or the name of the group that the reservation was made in: it holds no other"
        )
    elif not re.fullmatch(GROUP_NAME, choice):
        values.refuse("placementGroup", "auto, cluster, none or the name of an existing group")
    return (True, None) if choice == "cluster" else (False, choice)


def image(values: Values, known: NetworkFacts | None) -> ImageSettings:
    """The nodes' image; without a choice, AWS' own for the type."""
    chosen, architecture = values.text("ami"), known.architecture if known else "x86_64"
    if not chosen:
        neuron = known is not None and known.accelerator == "neuron"
        chosen = NEURON_IMAGE if neuron else GPU_IMAGE.format(architecture)
        if values.text("gpuInstanceType").startswith(CLOSED_DRIVER):
            values.refuse(
                "ami", "an image with NVIDIA's own kernel module: AWS' image has the open one, which needs Turing"
            )
    other = {"x86_64": "arm64", "arm64": "x86_64"}[architecture]
    if not re.fullmatch(AMI_ID + r"|(/[A-Za-z0-9_.-]+)+", chosen):
        values.refuse("ami", "an image id (ami-0123456789abcdef0), an SSM parameter (/aws/service/...), or nothing")
    elif known is not None and f"/{other}/" in chosen:
        values.refuse("ami", f"an image for {architecture}, the architecture of {known.instance_type}")
    by_id = chosen.startswith("ami-")
    return ImageSettings(
        ami_id=chosen if by_id else None,
        ssm_parameter=None if by_id else chosen,
        user=_user(values, chosen),
        architecture=architecture,
        # An id in ami is a pin itself.
        pin=None if by_id else values.checked("amiPin"),
    )


def _user(values: Values, chosen: str) -> str:
    return values.checked("amiUser") or ("ec2-user" if "amazon-linux" in chosen else "ubuntu")
