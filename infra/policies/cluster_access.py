"""An EKS cluster lets in who is named, keeps a record of it, and can be reached from inside the VPC."""

from typing import Iterator

from .model import UNKNOWN, Answer, Broken, PolicyContext, Registered, Rule, Unsure
from .values import items, require

CLUSTER = "aws:eks/cluster:Cluster"
LOGGED = ("audit", "authenticator")
"""Without these two nobody can say afterwards who did what."""


def check(resource: Registered, site: PolicyContext) -> Iterator[Answer]:
    """The cluster's own settings; from where it is reached is judged with other ways in."""
    if resource.type_ != CLUSTER:
        return
    props = resource.props
    yield from require(props, "accessConfig.authenticationMode", "API")
    yield from require(props, "accessConfig.bootstrapClusterCreatorAdminPermissions", False)
    yield from require(props, "vpcConfig.endpointPrivateAccess", True)
    kept = items(props, "enabledClusterLogTypes")
    if UNKNOWN in kept:
        yield Unsure("enabledClusterLogTypes is known only during the update")
        return
    for kind in LOGGED:
        if kind not in kept:
            yield Broken(f"enabledClusterLogTypes lacks {kind}")


RULE = Rule("cluster-access", "Who administers the cluster owns every node and all data that nodes can read.", check)
