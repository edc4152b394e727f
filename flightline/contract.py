"""What a stack promises: the tags its instances carry and the outputs it exports. Standard library only.

inventory/, the inventory plugin, playbooks/validate.yml and the alert router read these names; infra/__main__.py
exports exactly these outputs, infra/planning/tags.py sets these tags.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TAG_PROJECT = "flightline:project"
TAG_CLUSTER = "flightline:cluster"
TAG_STACK = "flightline:stack"
TAG_ROLE = "flightline:role"
TAG_INSTANCE_TYPE = "flightline:instance-type"
TAG_EFA_COUNT = "flightline:efa-count"
TAG_ORCHESTRATOR = "flightline:orchestrator"
TAG_CAPACITY = "flightline:capacity"

CALLS_PREFIX = "bundles/calls/"
"""Under it, in the results bucket, what nodes answer to Run Command."""

BOOT_PREFIX = "bundles/boot/"
"""Under it, by the instance's ARN, what a node's boots leave. IAM lets a node write under its own ARN alone."""
WRITER = r"arn:aws[a-z-]*:ec2:[a-z0-9-]+:\d{12}:instance/(i-[0-9a-f]{8,17})"
"""An instance's ARN as an element of a key, and the instance id in it."""

BOOT_TOLD = "told.json"
"""Beside an outcome: the alert router's word that the group was told of it."""

PODS_PREFIX = "bundles/pods/"
"""Under it, by its name, what an agent's pod on Kubernetes may leave."""

PROJECT = "flightline"
ROLE_GPU = "gpu-node"
ROLE_HEAD = "head-node"
ROLE_CPU = "cpu-node"
"""Of a Kubernetes stack only: what runs the cluster's own pods."""
ROLES = (ROLE_GPU, ROLE_HEAD, ROLE_CPU)

COMMON_TAGS = (TAG_PROJECT, TAG_CLUSTER, TAG_STACK)
"""On every resource that takes tags."""

INSTANCE_TAGS = (*COMMON_TAGS, TAG_ROLE, TAG_INSTANCE_TYPE, TAG_EFA_COUNT, TAG_ORCHESTRATOR, TAG_CAPACITY)
"""On every instance of the cluster, on top of its Name."""


@dataclass(frozen=True)
class Output:
    """One output of the stack. pattern: what its text must match as a whole; wanted says it in words.

    Only these types are exported: text, whole numbers, booleans and lists of text. An optional output is empty text
    when the stack does not have the thing. many: a list of such texts, at least one. read_by: where it is read; people:
    what a person does with one that nothing here reads. aliases: its earlier names (docs/stability.md).
    """

    name: str
    wanted: str
    pattern: str
    optional: bool = False
    many: bool = False
    read_by: str = "inventory/group_vars/aws_ec2"
    people: str = ""
    aliases: tuple[str, ...] = ()


_BUCKET = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
_NAME = r"[A-Za-z0-9_.-]{3,255}"
_LOG_GROUP = r"/[A-Za-z0-9_./#-]{1,511}"
_ARN = r"arn:aws[a-z-]*:{}:[a-z0-9-]*:\d{{12}}:.+"
_ID = r"{}-[0-9a-f]{{8,17}}"

OUTPUTS = (
    Output("cluster_name", "the cluster's name", r"[a-z][a-z0-9-]+"),
    Output("stack", "the stack's name", r"[A-Za-z0-9_.-]+", read_by="flightline/stack.py"),
    Output("region", "an AWS region", r"[a-z]{2}(-[a-z]+)+-\d"),
    Output(
        "gpu_zone",
        "the nodes' availability zone, nothing where they are in several",
        r"[a-z]{2}(-[a-z]+)+-\d(-[a-z]+-\d)?[a-z]",
        optional=True,
        read_by="flightline/stack.py",
    ),
    Output("vpc_id", "vpc-...", _ID.format("vpc"), people="peering, endpoints and hosts of your own beside the nodes"),
    Output(
        "private_subnet_ids",
        "a list of subnet-...",
        _ID.format("subnet"),
        many=True,
        people="hosts of your own in the nodes' network",
    ),
    Output("fabric_security_group_id", "sg-...", _ID.format("sg"), people="a host of your own that reaches the nodes"),
    Output("orchestrator", "none, slurm or eks", r"none|slurm|eks", read_by="flightline/stack.py"),
    Output("instance_type", "an EC2 instance type", r"[a-z0-9-]+\.[a-z0-9]+", read_by="flightline/stack.py"),
    Output("node_count", "a whole number above 0", r"[1-9]\d*", read_by="flightline/stack.py"),
    Output("efa_count", "a whole number", r"\d+"),
    Output(
        "node_group",
        "the Auto Scaling group's name",
        _NAME,
        people="aws autoscaling: instance refresh, capacity, activity",
    ),
    Output("head_instance_id", "i-...", _ID.format("i"), optional=True, people="aws ssm start-session --target"),
    Output("access_mode", "ssm or ssh", r"ssm|ssh"),
    Output("node_user", "the login name of the image", r"[a-z_][a-z0-9_-]*"),
    Output("image_id", "ami-...", _ID.format("ami"), optional=True, read_by="scripts/cluster"),
    Output("data_bucket", "a bucket name", _BUCKET, people="what the jobs read: aws s3 sync"),
    Output("checkpoints_bucket", "a bucket name", _BUCKET, people="what the jobs wrote: aws s3 ls"),
    Output("results_bucket", "a bucket name", _BUCKET),
    Output("transfer_bucket", "a bucket name", _BUCKET),
    Output(
        "checkpoints_url", "s3://, where checkpoints go", rf"s3://{_BUCKET}/", read_by="flightline/kubernetes/site.py"
    ),
    Output("results_table", "a table name", _NAME),
    Output("training_table", "a table name", _NAME, people="runs of training jobs: aws dynamodb query"),
    Output("alerts_topic_arn", "an SNS topic ARN", _ARN.format("sns")),
    Output("slack_secret_arn", "a Secrets Manager ARN", _ARN.format("secretsmanager"), optional=True),
    Output("fsx_id", "fs-...", _ID.format("fs"), optional=True, people="aws fsx: throughput, data repository tasks"),
    Output("fsx_dns_name", "the file system's DNS name", r"fs-[0-9a-f]+\.fsx\.[a-z0-9.-]+", optional=True),
    Output("fsx_mount_name", "the file system's mount name", r"[a-z0-9]{1,8}", optional=True),
    Output(
        "fsx_data_repository",
        "s3://, what /fsx/data is linked to",
        rf"s3://{_BUCKET}(/\S*)?",
        optional=True,
        read_by="playbooks/preload.yml",
    ),
    Output("fsx_efa", "true or false", r"true|false"),
    Output("results_log_group", "a log group", _LOG_GROUP),
    Output("system_log_group", "a log group", _LOG_GROUP),
    Output("metric_namespace", "the cluster's namespace, Flightline/...", r"Flightline/[a-z0-9-]+"),
    # begin: made by python -m tools.stack_settings
    Output(
        "package_source",
        "one of internet, image, mirror",
        r"internet|image|mirror",
        read_by="roles/package_repository",
    ),
    Output(
        "drain_minutes",
        "0 to 110 minutes",
        r"-?\d+",
        read_by="roles/flightline_notice",
    ),
    Output(
        "log_retention_days",
        "a whole number",
        r"-?\d+",
        read_by="roles/cloudwatch_agent",
    ),
    # end: made by python -m tools.stack_settings
)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (str, int)) else ""


def _wrong(output: Output, value: Any) -> bool:
    if output.optional and value in ("", []):
        return False
    listed = value if isinstance(value, (list, tuple)) else []
    items = listed if output.many else [value]
    return not items or not all(re.fullmatch(output.pattern, _text(item)) for item in items)


EARLIER = {alias: output.name for output in OUTPUTS for alias in output.aliases}
"""Earlier name of an output -> today's."""


def today(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Outputs under today's names and the earlier ones, whichever of them a stack exports."""
    found = {**{EARLIER[name]: value for name, value in outputs.items() if name in EARLIER}, **outputs}
    return {**found, **{alias: found[name] for alias, name in EARLIER.items() if name in found}}


def mistakes(outputs: Mapping[str, Any]) -> list[str]:
    """Every output that is missing or wrong: its name, what was seen and what was wanted."""
    found = []
    for output in OUTPUTS:
        if output.name not in outputs:
            found.append(f"{output.name}: missing; wanted {output.wanted}")
        elif _wrong(output, outputs[output.name]):
            found.append(f"{output.name}: saw {outputs[output.name]!r}; wanted {output.wanted}")
    return found


def drain_hook(cluster: str) -> str:
    """The name of the hook by which a cluster's Auto Scaling group holds a node that it ends."""
    return f"{cluster}-drain"


def preflight_document(cluster: str) -> str:
    """The name of the Systems Manager document that asks a node of a cluster."""
    return f"{cluster}-preflight"


# ---- Kubernetes: what the stack's node groups, the manifests, the agent on a node and healing mean alike.

KUBE_NAMESPACE = "flightline"
"""Of the agent. It is privileged there; workloads have namespaces of their own."""
KUBE_TRAINING_NAMESPACE = "flightline-training"

KUBE_AGENT = "flightline-node"
"""The DaemonSet of the agent and its service account."""
KUBE_CONTROL = "flightline-control"
"""The service account of what runs on the control side: nightly preflight, healing."""
KUBE_TRAINER = "train"
"""The service account of training pods, in their namespace: its role reads data and writes checkpoints."""

KUBE_STARTUP_TAINT = "flightline/unproven"
"""Key of the taint with which a GPU node registers; only a go removes it. Value: empty."""
KUBE_FAULT_TAINT = "flightline/unclean"
"""Key of the taint of a node whose verdict is no-go. Value: empty."""
KUBE_TAINT_EFFECT = "NoSchedule"
KUBE_KUBELET_TAINT = f"{KUBE_STARTUP_TAINT}:{KUBE_TAINT_EFFECT}"
"""As kubelet's --register-with-taints and eksctl write it."""

KUBE_CONDITION = "FlightlineReady"
"""Type of the node's condition: True go, False no-go, Unknown not judged."""

KUBE_GPU_LABEL = "flightline/gpu"
"""On every GPU node, with KUBE_LABEL_TRUE as its value: what the DaemonSet selects."""
KUBE_LABEL_TRUE = "true"
KUBE_TYPE_LABEL = "node.kubernetes.io/instance-type"
"""Kubernetes' own label of the instance type, written by the cloud's controller, never by the node's agent."""
KUBE_VERDICT_LABEL = "flightline/verdict"
"""go, no-go or unproven: what the agent said last."""
KUBE_LEVEL_LABEL = "flightline/level"
KUBE_GPU_RESOURCE = "nvidia.com/gpu"
KUBE_EFA_RESOURCE = "vpc.amazonaws.com/efa"
"""Extended resources of the NVIDIA and EFA device plugins."""
