"""What is there already and is joined instead of made: what must come with it, and the names that it has.

What has an id (VPC, subnets, security group, file system) is an argument of a component; what has a name (buckets,
topic, EKS cluster) is a setting, because IAM documents are written from names before anything exists.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from infra.config.model import StackSettings
from infra.planning.names import Names, Place, names

Mistake = tuple[str, str, str]
"""Field, what was seen, what was wanted."""
BESIDE_A_VPC = ("subnet_ids", "public_subnet_id", "route_table_ids", "existing_endpoints")


def network_mistakes(given: Any, settings: StackSettings) -> Iterator[Mistake]:
    """What is missing beside a VPC, or is given without one. given: has NetworkSettings' fields that name a network."""
    if given.vpc_id is None:
        for field in BESIDE_A_VPC:
            if getattr(given, field):
                yield field, "it without a VPC", "nothing, or the VPC that it is of"
        return
    zones = settings.network.zones
    # EKS asks for two zones, whatever the GPU nodes do.
    needed = max(*zones.nodes, 1 if settings.on_kubernetes else 0) + 1
    if len(given.subnet_ids) < needed:
        wanted = f"private subnets of the VPC in the order of availabilityZones: {', '.join(zones.names[:needed])}"
        yield "subnet_ids", f"{len(given.subnet_ids)} beside a VPC", wanted
    if settings.head.enabled and settings.access.mode == "ssh" and given.public_subnet_id is None:
        yield "public_subnet_id", "none beside a VPC", "a public subnet: the head node is reached by SSH from outside"


def cluster_names(settings: StackSettings, place: Place) -> Names:
    """Every physical name of a cluster, with those that were there before it."""
    made = names(settings.cluster_name, place, settings.network.zones.home_id)
    return replace(
        made,
        data_bucket=settings.storage.data_bucket or made.data_bucket,
        checkpoints_bucket=settings.storage.checkpoints_bucket or made.checkpoints_bucket,
        alerts_topic=settings.notifications.topic or made.alerts_topic,
        kubernetes_cluster=settings.kubernetes.cluster or made.kubernetes_cluster,
    )
