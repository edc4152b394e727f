"""GPU nodes: type, count, capacity, placement, image."""

from __future__ import annotations

import re

from infra.config import scaling
from infra.config.draft import Draft
from infra.config.model import Capacity, Image, Nodes
from infra.planning import subnets
from infra.planning.instance_types import CAPACITIES, CAPACITY_BLOCK, ON_DEMAND, RESERVATION, NetworkFacts, facts

EFA_CHOICES = ("auto", "on", "off")
MOST_NODES = 5000
MOST_NODES_PER_BLOCK = 64
"""EC2 capacity blocks: at most 64 instances each (EC2 user guide, 2026)."""

OTHER_ADDRESSES = 16
"""Addresses of the GPU subnet that FSx, interface endpoints and the head node take."""

CLOSED_DRIVER = ("p3dn.",)
"""Volta: NVIDIA's open kernel modules begin with Turing."""

RESERVATION_ID = r"cr-[0-9a-f]{17}"
AMI_ID = r"ami-([0-9a-f]{8}|[0-9a-f]{17})"
GROUP_NAME = r"[A-Za-z0-9_.-]{1,255}"
# AWS Deep Learning AMIs and the Neuron AMI by their public parameters (DLAMI and Neuron guides, 2026).
GPU_IMAGE = "/aws/service/deeplearning/ami/{}/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"
NEURON_IMAGE = "/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id"


def instance_facts(draft: Draft) -> NetworkFacts | None:
    """Facts of the GPU instance type; None when it is a mistake."""
    try:
        return facts(draft.text("gpuInstanceType"))
    except ValueError as error:
        draft.refuse("gpuInstanceType", str(error))
        return None


def read(draft: Draft, known: NetworkFacts | None) -> Nodes:
    """The nodes' settings."""
    count, minimum, maximum = _counts(draft)
    capacity = _capacity(draft, known, maximum)
    efa = _efa(draft, known)
    create, group = _placement(draft, capacity.kind, multi_node_fabric=efa and maximum > 1)
    return Nodes(
        instance_type=draft.text("gpuInstanceType"),
        count=count,
        minimum=minimum,
        maximum=maximum,
        capacity=capacity,
        efa=efa,
        create_placement_group=create,
        placement_group=group,
        root_volume_gib=draft.within("rootVolumeGib", 100, 16384, "GiB"),
        spot=scaling.spot(
            draft, known, capacity.kind, efa, scaling.Together(efa and maximum > 1, create or group is not None)
        ),
        scaling=scaling.scaling(draft, known, minimum, maximum),
    )


def _counts(draft: Draft) -> tuple[int, int, int]:
    count, minimum = draft.number("gpuNodeCount"), draft.number("gpuNodeMinimum")
    maximum = draft.number("gpuNodeMaximum") or count
    if not 1 <= count <= MOST_NODES:
        draft.refuse("gpuNodeCount", f"1 to {MOST_NODES}; `make down-compute` removes the nodes and keeps the data")
    elif count < minimum:
        draft.refuse("gpuNodeCount", f"at least gpuNodeMinimum, {minimum}")
    if minimum < 0:
        draft.refuse("gpuNodeMinimum", "0 or more")
    if not draft.refused("gpuNodeCount") and not count <= maximum <= MOST_NODES:
        draft.refuse("gpuNodeMaximum", f"0 (as many as gpuNodeCount), or gpuNodeCount ({count}) to {MOST_NODES}")
    return count, minimum, maximum


def room(draft: Draft, nodes: Nodes) -> None:
    """Refuse a GPU subnet without an address for every node (EFA-only interfaces take none)."""
    if draft.refused("privateSubnetCidrs", "vpcCidr", "gpuNodeCount", "gpuNodeMaximum"):
        return
    wanted = nodes.maximum + OTHER_ADDRESSES
    why = f"{nodes.maximum} nodes and what serves them"
    for word, block in zip(("first", "second")[: nodes.spot.zones], draft.items("privateSubnetCidrs"), strict=False):
        if subnets.addresses(block) < wanted:
            draft.refuse("privateSubnetCidrs", f"a {word} block with {wanted} addresses: {why}", block)


def _capacity(draft: Draft, known: NetworkFacts | None, maximum: int) -> Capacity:
    kind = draft.one_of("capacityType", CAPACITIES)
    if kind in CAPACITIES and known is not None and kind not in known.capacities:
        sold = ", ".join(choice for choice in CAPACITIES if choice in known.capacities)
        draft.refuse("capacityType", f"a way that {known.instance_type} is sold: {sold}")
    reservation_id = draft.text("capacityReservationId")
    reserved = kind in (RESERVATION, CAPACITY_BLOCK)
    if reserved:
        draft.matching("capacityReservationId", RESERVATION_ID, f"the {kind}'s id, cr- and 17 hexadecimal digits")
    elif reservation_id:
        draft.refuse(
            "capacityReservationId", f"nothing with capacityType {kind}, or reservation or capacity-block there"
        )
    if kind == CAPACITY_BLOCK and maximum > MOST_NODES_PER_BLOCK:
        name = "gpuNodeMaximum" if draft.number("gpuNodeMaximum") else "gpuNodeCount"
        draft.refuse(name, f"at most {MOST_NODES_PER_BLOCK}, the most instances of one capacity block")
    return Capacity(kind, reservation_id if reserved else None)


def _efa(draft: Draft, known: NetworkFacts | None) -> bool:
    choice = draft.one_of("efa", EFA_CHOICES)
    if known is None or choice == "off":
        return False
    if choice == "on" and not known.efa_count:
        draft.refuse("efa", f"auto or off: {known.instance_type} has no EFA")
    return known.efa_count > 0


def _placement(draft: Draft, kind: str, multi_node_fabric: bool) -> tuple[bool, str | None]:
    choice = draft.text("placementGroup")
    if choice == "none":
        return False, None
    if choice == "auto":
        # A reservation made outside a group cannot be used inside one (eksctl-io/eksctl 7949), so none is made for it.
        return multi_node_fabric and kind in (ON_DEMAND, "spot"), None
    if kind == CAPACITY_BLOCK:
        draft.refuse("placementGroup", "auto or none: AWS places the instances of a capacity block together itself")
    elif choice == "cluster" and kind == RESERVATION:
        draft.refuse(
            "placementGroup", "auto, none, or the name of the group that the reservation was made in: it holds no other"
        )
    elif not re.fullmatch(GROUP_NAME, choice):
        draft.refuse("placementGroup", "auto, cluster, none or the name of an existing group")
    return (True, None) if choice == "cluster" else (False, choice)


def image(draft: Draft, known: NetworkFacts | None) -> Image:
    """The nodes' image; without a choice, AWS' own for the type."""
    chosen, architecture = draft.text("ami"), known.architecture if known else "x86_64"
    if not chosen:
        neuron = known is not None and known.accelerator == "neuron"
        chosen = NEURON_IMAGE if neuron else GPU_IMAGE.format(architecture)
        if draft.text("gpuInstanceType").startswith(CLOSED_DRIVER):
            draft.refuse(
                "ami", "an image with NVIDIA's own kernel module: AWS' image has the open one, which needs Turing"
            )
    other = {"x86_64": "arm64", "arm64": "x86_64"}[architecture]
    if not re.fullmatch(AMI_ID + r"|(/[A-Za-z0-9_.-]+)+", chosen):
        draft.refuse("ami", "an image id (ami-0123456789abcdef0), an SSM parameter (/aws/service/...), or nothing")
    elif known is not None and f"/{other}/" in chosen:
        draft.refuse("ami", f"an image for {architecture}, the architecture of {known.instance_type}")
    by_id = chosen.startswith("ami-")
    return Image(
        ami_id=chosen if by_id else None,
        ssm_parameter=None if by_id else chosen,
        user=_user(draft, chosen),
        architecture=architecture,
        # An id in ami is a pin itself.
        pin=None if by_id else _pin(draft),
    )


def _pin(draft: Draft) -> str | None:
    wanted = "an image id (ami-0123456789abcdef0), or nothing for the newest"
    return draft.matching("amiPin", f"({AMI_ID})?", wanted) or None


def _user(draft: Draft, chosen: str) -> str:
    user = draft.text("amiUser")
    if not user:
        return "ec2-user" if "amazon-linux" in chosen else "ubuntu"
    return draft.matching("amiUser", r"[a-z_][a-z0-9_-]{0,31}", "a login name such as ubuntu or ec2-user")
