"""Components become outputs: exactly those that `flightline.contract` promises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pulumi

from flightline import contract
from infra.config.declare import reaching
from infra.config.model import KEYS
from infra.planning import efa

if TYPE_CHECKING:
    from infra.cluster import GpuCluster
    from infra.components.storage import Storage


def outputs(cluster: GpuCluster) -> Mapping[str, Any]:
    """The stack's outputs: what `flightline.contract` promises, in plain values and never a secret."""
    return contract.today({**_settled(cluster), **_learned(cluster)})


def _settled(cluster: GpuCluster) -> dict[str, Any]:
    """Outputs that are decided before anything exists."""
    settings, names = cluster.plan.settings, cluster.plan.names
    return {
        "cluster_name": settings.cluster_name,
        "stack": cluster.plan.stack,
        "region": settings.region,
        # Of nodes in several zones none is the right one.
        "gpu_zone": settings.network.zones.gpu_name if len(settings.network.zones.nodes) == 1 else "",
        "orchestrator": settings.orchestrator,
        "instance_type": settings.nodes.instance_type,
        "node_count": settings.nodes.count,
        "efa_count": efa.efa_count(efa.interfaces(settings.nodes.instance_type, settings.nodes.efa)),
        "access_mode": settings.access.mode,
        "node_user": settings.image.user,
        "image_id": cluster.plan.image.image_id if cluster.plan.image else "",
        "fsx_efa": bool(settings.storage.fsx and settings.storage.fsx.efa),
        "metric_namespace": names.metric_namespace,
        **{key.output: key.default for key in KEYS if key.variable},
        **dict(reaching(settings)),
    }


def node_variables(cluster: GpuCluster) -> dict[str, Any]:
    """What the roles on a node know of the stack: the outputs, but for those that come after the nodes themselves.

    Nor how many nodes there are: their launch template would change with every change of their number.
    """
    known = {**_settled(cluster), **_before_nodes(cluster), "node_group": cluster.plan.names.node_group}
    del known["node_count"]
    return contract.today(known)


def _learned(cluster: GpuCluster) -> dict[str, Any]:
    """Outputs that name what was made."""
    return {
        **_before_nodes(cluster),
        "node_group": cluster.nodes.group_name,
        "head_instance_id": cluster.head.instance_id if cluster.head else "",
    }


def _checkpoints(storage: Storage) -> pulumi.Output[str]:
    """The directory bucket beside the nodes where there is one: a checkpoint stops the job while it is written."""
    return pulumi.Output.concat("s3://", storage.express.bucket if storage.express else storage.checkpoints.name, "/")


def _before_nodes(cluster: GpuCluster) -> dict[str, Any]:
    storage, lustre = cluster.storage, cluster.file_system
    return {
        "vpc_id": cluster.network.vpc_id,
        "private_subnet_ids": cluster.network.private_subnet_ids,
        "fabric_security_group_id": cluster.fabric.id,
        "data_bucket": storage.data.name,
        "checkpoints_bucket": storage.checkpoints.name,
        "results_bucket": storage.results.name,
        "transfer_bucket": storage.transfer.name,
        "checkpoints_url": _checkpoints(storage),
        "results_table": cluster.tables.results.name,
        "training_table": cluster.tables.training.name,
        "alerts_topic_arn": cluster.notifications.topic_arn,
        "slack_secret_arn": cluster.notifications.slack_secret_arn or "",
        "fsx_id": lustre.id if lustre else "",
        "fsx_dns_name": lustre.dns_name if lustre else "",
        "fsx_mount_name": lustre.mount_name if lustre else "",
        "fsx_data_repository": (lustre.repository if lustre else None) or "",
        "results_log_group": cluster.logs.groups["results"].name,
        "system_log_group": cluster.logs.groups["system"].name,
    }
