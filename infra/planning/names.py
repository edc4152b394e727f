"""Physical names, derived from the cluster name. IAM documents and user data rely on them, so they are explicit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from flightline.contract import preflight_document

FUNCTIONS = ("storage", "alert-router", "training-input", "verdict")
"""Lambda functions of the stack."""

KUBERNETES_ROLES = ("cluster", "nodes", "agent", "control", "trainer", "vpc-cni", "ebs-csi", "fsx-csi")
"""Who assumes a role of a Kubernetes cluster: EKS, its nodes, this project's service accounts, add-ons."""

LONGEST_REGION = "ap-southeast-1"
_LONGEST_ZONE_ID = "usw2-lax1-az1"
_ANY_ACCOUNT = "0" * 12


@dataclass(frozen=True)
class Place:
    """Where a stack lives. partition: "aws", "aws-cn" or "aws-us-gov"."""

    partition: str
    region: str
    account: str

    def arn(self, service: str, resource: str) -> str:
        """ARN of a regional resource of this account."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"


@dataclass(frozen=True)
class Names:
    """Every physical name of a cluster. functions and function_roles are keyed by FUNCTIONS.

    kubernetes_roles is keyed by KUBERNETES_ROLES. kubernetes_cluster and the names after it are of orchestrator eks.
    """

    cluster: str
    data_bucket: str
    checkpoints_bucket: str
    results_bucket: str
    transfer_bucket: str
    express_bucket: str
    trail_bucket: str
    results_table: str
    training_table: str
    alerts_topic: str
    alerts_key_alias: str
    dead_letter_queue: str
    slack_secret: str
    node_role: str
    head_role: str
    flow_log_role: str
    node_profile: str
    head_profile: str
    training_document: str
    preflight_document: str
    functions: Mapping[str, str]
    function_roles: Mapping[str, str]
    node_group: str
    launch_template: str
    launch_hook: str
    placement_group: str
    results_log_group: str
    system_log_group: str
    flow_log_group: str
    fsx_log_group: str
    trail: str
    budget: str
    metric_namespace: str
    kubernetes_cluster: str
    kubernetes_key_alias: str
    kubernetes_log_group: str
    kubernetes_roles: Mapping[str, str]
    cpu_node_group: str

    @staticmethod
    def package_key(sha256: str) -> str:
        """Key of the node package in the results bucket: by content, so that a new one never replaces one in use."""
        return f"artifacts/flightline-node-{sha256}.pyz"

    @staticmethod
    def roles_key(sha256: str) -> str:
        """Key of the roles' bundle in the results bucket."""
        return f"artifacts/flightline-roles-{sha256}.tar.gz"

    @staticmethod
    def variables_key(sha256: str) -> str:
        """Key of the stack's variables for the roles in the results bucket."""
        return f"artifacts/flightline-stack-{sha256}.json"


def names(cluster: str, place: Place, gpu_zone_id: str) -> Names:
    """Derive every name; `too_long` says which of them a long cluster name breaks."""
    return Names(
        cluster=cluster,
        functions=MappingProxyType({name: f"{cluster}-{name}" for name in FUNCTIONS}),
        function_roles=MappingProxyType({name: f"{cluster}-{name}-{place.region}" for name in FUNCTIONS}),
        **_buckets(cluster, place, gpu_zone_id),
        **_roles(cluster, place.region),
        **_groups(cluster),
        results_table=f"{cluster}-results",
        training_table=f"{cluster}-training",
        alerts_topic=f"{cluster}-alerts",
        alerts_key_alias=f"alias/flightline-{cluster}-alerts",
        dead_letter_queue=f"{cluster}-dead-letters",
        slack_secret=f"flightline/{cluster}/slack-webhook",
        training_document=f"{cluster}-start-training",
        preflight_document=preflight_document(cluster),
        trail=f"{cluster}-trail",
        budget=f"{cluster}-monthly",
        metric_namespace=f"Flightline/{cluster}",
        kubernetes_cluster=cluster,
        kubernetes_key_alias=f"alias/flightline-{cluster}-kubernetes",
        # EKS writes to this name and no other.
        kubernetes_log_group=f"/aws/eks/{cluster}/cluster",
        kubernetes_roles=MappingProxyType({name: f"{cluster}-eks-{name}-{place.region}" for name in KUBERNETES_ROLES}),
        cpu_node_group=f"{cluster}-cpu",
    )


def _buckets(cluster: str, place: Place, gpu_zone_id: str) -> dict[str, str]:
    """Bucket names are global, so they carry account and region; a directory bucket's ends with its zone."""
    purposes = ("data", "checkpoints", "results", "transfer", "trail")
    found = {f"{purpose}_bucket": f"{cluster}-{purpose}-{place.account}-{place.region}" for purpose in purposes}
    return {**found, "express_bucket": f"{cluster}-{place.account}--{gpu_zone_id}--x-s3"}


def _roles(cluster: str, region: str) -> dict[str, str]:
    """IAM is global as well, but of one account: roles carry the region."""
    node, head = f"{cluster}-gpu-node-{region}", f"{cluster}-head-node-{region}"
    return {
        "node_role": node,
        "node_profile": node,
        "head_role": head,
        "head_profile": head,
        "flow_log_role": f"{cluster}-flow-logs-{region}",
    }


def _groups(cluster: str) -> dict[str, str]:
    """The nodes' group and what belongs to it; log groups."""
    return {
        **dict.fromkeys(("node_group", "launch_template", "placement_group"), f"{cluster}-gpu"),
        "launch_hook": f"{cluster}-boot-preflight",
        **{f"{kind}_log_group": f"/flightline/{cluster}/{kind}" for kind in ("results", "system", "flow")},
        # FSx only writes to groups under this prefix.
        "fsx_log_group": f"/aws/fsx/{cluster}",
    }


_LIMITS: Mapping[int, tuple[str, ...]] = MappingProxyType(
    {
        63: (
            *(
                "data_bucket",
                "checkpoints_bucket",
                "results_bucket",
                "transfer_bucket",
                "express_bucket",
                "trail_bucket",
            ),
            # Of an EKS node group; an Auto Scaling group's could be longer.
            *("node_group", "cpu_node_group"),
        ),
        64: ("node_role", "head_role", "flow_log_role"),
        80: ("dead_letter_queue",),
        100: ("kubernetes_cluster", "budget"),
        128: ("node_profile", "head_profile", "training_document", "preflight_document", "launch_template", "trail"),
        255: ("launch_hook", "placement_group", "metric_namespace"),
        256: ("alerts_topic",),
    }
)
"""Most characters -> the names that may have so many."""
_FUNCTION_LIMIT = 64
_ROLE_LIMIT = 64


def _derived(cluster: str, region: str) -> list[tuple[str, str, int]]:
    plan = names(cluster, Place("aws", region or LONGEST_REGION, _ANY_ACCOUNT), _LONGEST_ZONE_ID)
    found = [(field, str(getattr(plan, field)), limit) for limit, known in _LIMITS.items() for field in known]
    found += [(f"function {name}", value, _FUNCTION_LIMIT) for name, value in plan.functions.items()]
    roles = {**plan.function_roles, **plan.kubernetes_roles}
    found += [(f"role of {name}", value, _ROLE_LIMIT) for name, value in roles.items()]
    return found


def too_long(cluster: str, region: str) -> list[str]:
    """What is wrong with names derived from the cluster name; empty when all fit. region may be empty (not known)."""
    return [
        f"at most {len(cluster) - (len(value) - limit)} characters: {field.replace('_', ' ')} would be {value!r}, "
        f"{len(value)} characters of {limit}"
        for field, value, limit in _derived(cluster, region)
        if len(value) > limit
    ]
