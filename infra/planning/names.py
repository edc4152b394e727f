"""Physical names, derived from the cluster name. IAM documents and user data rely on them, so they are explicit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from flightline.contract import drain_hook, preflight_document

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


_TEMPLATE, _EACH, _MOST = "template", "each", "most"


def _named(template: str, most: int = 0, each: tuple[str, ...] = ()) -> Any:
    """A name of cluster, account, region and zone. most: characters that AWS takes. each: one for each of these."""
    return field(metadata={_TEMPLATE: template, _MOST: most, _EACH: each})


@dataclass(frozen=True)
class Names:
    """Every physical name of a cluster. functions and function_roles are keyed by FUNCTIONS.

    kubernetes_roles is keyed by KUBERNETES_ROLES. kubernetes_cluster and the names after it are of orchestrator eks.
    """

    cluster: str = _named("{cluster}")
    # Bucket names are global, so they carry account and region; a directory bucket's ends with its zone.
    data_bucket: str = _named("{cluster}-data-{account}-{region}", 63)
    checkpoints_bucket: str = _named("{cluster}-checkpoints-{account}-{region}", 63)
    results_bucket: str = _named("{cluster}-results-{account}-{region}", 63)
    transfer_bucket: str = _named("{cluster}-transfer-{account}-{region}", 63)
    express_bucket: str = _named("{cluster}-{account}--{zone}--x-s3", 63)
    trail_bucket: str = _named("{cluster}-trail-{account}-{region}", 63)
    results_table: str = _named("{cluster}-results")
    training_table: str = _named("{cluster}-training")
    alerts_topic: str = _named("{cluster}-alerts", 256)
    key_alias: str = _named("alias/flightline-{cluster}")
    alerts_key_alias: str = _named("alias/flightline-{cluster}-alerts")
    dead_letter_queue: str = _named("{cluster}-dead-letters", 80)
    probe_queue: str = _named("{cluster}-monitor-probe", 80)
    slack_secret: str = _named("flightline/{cluster}/slack-webhook")
    # IAM is global as well, but of one account: roles carry the region.
    node_role: str = _named("{cluster}-gpu-node-{region}", 64)
    head_role: str = _named("{cluster}-head-node-{region}", 64)
    flow_log_role: str = _named("{cluster}-flow-logs-{region}", 64)
    node_profile: str = _named("{cluster}-gpu-node-{region}", 128)
    head_profile: str = _named("{cluster}-head-node-{region}", 128)
    training_document: str = _named("{cluster}-start-training", 128)
    preflight_document: str = _named(preflight_document("{cluster}"), 128)
    functions: Mapping[str, str] = _named("{cluster}-{name}", 64, FUNCTIONS)
    function_roles: Mapping[str, str] = _named("{cluster}-{name}-{region}", 64, FUNCTIONS)
    # Of an EKS node group; an Auto Scaling group's could be longer.
    node_group: str = _named("{cluster}-gpu", 63)
    launch_template: str = _named("{cluster}-gpu", 128)
    launch_hook: str = _named("{cluster}-boot-preflight", 255)
    drain_hook: str = _named(drain_hook("{cluster}"), 255)
    placement_group: str = _named("{cluster}-gpu", 255)
    results_log_group: str = _named("/flightline/{cluster}/results")
    system_log_group: str = _named("/flightline/{cluster}/system")
    flow_log_group: str = _named("/flightline/{cluster}/flow")
    # FSx only writes to groups under this prefix.
    fsx_log_group: str = _named("/aws/fsx/{cluster}")
    # Of the whole account, whatever the region: a trail has a shadow of its name in every one.
    trail: str = _named("{cluster}-trail-{region}", 128)
    budget: str = _named("{cluster}-monthly-{region}", 100)
    dashboard: str = _named("{cluster}-{region}", 255)
    metric_namespace: str = _named("Flightline/{cluster}", 255)
    kubernetes_cluster: str = _named("{cluster}", 100)
    kubernetes_key_alias: str = _named("alias/flightline-{cluster}-kubernetes")
    # EKS writes to this name and no other.
    kubernetes_log_group: str = _named("/aws/eks/{cluster}/cluster")
    kubernetes_roles: Mapping[str, str] = _named("{cluster}-eks-{name}-{region}", 64, KUBERNETES_ROLES)
    cpu_node_group: str = _named("{cluster}-cpu", 63)

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
    known = {"cluster": cluster, "account": place.account, "region": place.region, "zone": gpu_zone_id}
    made: dict[str, Any] = {}
    for part in fields(Names):
        template, each = part.metadata[_TEMPLATE], part.metadata[_EACH]
        several = MappingProxyType({name: template.format(**known, name=name) for name in each})
        made[part.name] = several if each else template.format(**known)
    return Names(**made)


def _derived(cluster: str, region: str) -> Iterator[tuple[str, str, int]]:
    plan = names(cluster, Place("aws", region or LONGEST_REGION, _ANY_ACCOUNT), _LONGEST_ZONE_ID)
    for part in fields(Names):
        found, most = getattr(plan, part.name), part.metadata[_MOST]
        if part.metadata[_EACH]:
            kind = "function" if part.name == "functions" else "role of"
            yield from ((f"{kind} {name}", value, most) for name, value in found.items())
        elif most:
            yield part.name.replace("_", " "), found, most


def too_long(cluster: str, region: str) -> list[str]:
    """What is wrong with names derived from the cluster name; empty when all fit. region may be empty (not known)."""
    return [
        f"at most {len(cluster) - (len(value) - limit)} characters: {word} would be {value!r}, "
        f"{len(value)} characters of {limit}"
        for word, value, limit in _derived(cluster, region)
        if len(value) > limit
    ]
