"""Account quotas that a stack's size can meet before its capacity does."""

from infra.config.model import NodesSettings
from infra.planning import efa

INTERFACES_PER_REGION = 5000
"""Network interfaces per region, the default; it can be raised (Amazon VPC quotas, L-DF5E4CA3, 2026)."""

NODES_PER_GROUP = 450
"""Nodes of an EKS managed node group, the default; it can be raised (EKS quotas, L-BD136A63)."""


def node_group(nodes: NodesSettings) -> str | None:
    """What to know of an EKS node group's quota; None where the nodes stay within the default."""
    if nodes.maximum <= NODES_PER_GROUP:
        return None
    return (
        f"gpuNodeMaximum is {nodes.maximum}; an EKS node group takes {NODES_PER_GROUP} nodes unless yours was raised. "
        "Look before nodes are missing: "
        "`aws service-quotas get-service-quota --service-code eks --quota-code L-BD136A63`."
    )


def interfaces(nodes: NodesSettings) -> str | None:
    """What to know of the network-interface quota; None where the nodes stay far below the default."""
    each = len(efa.interfaces(nodes.instance_type, nodes.efa))
    wanted = each * nodes.maximum
    if wanted * 2 <= INTERFACES_PER_REGION:
        return None
    return (
        f"{nodes.maximum} nodes of {nodes.instance_type} take {wanted} network interfaces ({each} each); a region "
        f"allows {INTERFACES_PER_REGION} unless yours was raised, for everything in it. Look before nodes are missing: "
        "`aws service-quotas get-service-quota --service-code vpc --quota-code L-DF5E4CA3`."
    )
