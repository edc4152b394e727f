"""What parts of a Kubernetes cluster may do. Its nodes may be managed, and no more: pods have roles of their own."""

from flightline.contract import PODS_PREFIX, TAG_CLUSTER
from infra.planning.iam.control import HEAL, REPLACE, notify, store
from infra.planning.iam.node import data, logs, managed, metrics
from infra.planning.iam.statements import Arns, Document, allow, document, of
from infra.planning.names import Names, Place

POD = "${aws:PrincipalTag/kubernetes-pod-name}"
"""Which pod asks: a session tag that EKS sets. It names no node, so what a pod writes proves nothing of one. Source:
EKS user guide, "Grant Pods access to AWS resources based on tags"."""
_LOOK = (
    *of("autoscaling", "DescribeAutoScalingGroups", "DescribeAutoScalingInstances"),
    *of(
        "ec2", "DescribeCapacityReservations", "DescribeInstanceStatus", "DescribeInstanceTopology", "DescribeInstances"
    ),
    "fsx:DescribeFileSystems",
)


def kubernetes_policies(
    s3_express: bool, slack: bool, names: Names, place: Place, topic_key_arn: str
) -> dict[str, dict[str, Document]]:
    """Role (of KUBERNETES_ROLES) -> purpose -> document. AWS' own policies stand beside them (planning.kubernetes)."""
    arns = Arns(names, place)
    return {
        "nodes": {"ssm": managed(arns)},
        "agent": {"records": _records(arns), "logs": logs(arns, POD), "metrics": metrics(names)},
        "control": {
            "nodes": _nodes(arns),
            "store": store(arns),
            "metrics": metrics(names),
            "notify": notify(arns, topic_key_arn, slack=slack),
        },
        "trainer": {"data": data(arns, s3_express)},
        # File systems are the stack's: the driver mounts, and makes none.
        "fsx-csi": {"look": document(allow("Look", ["fsx:DescribeFileSystems"]))},
    }


def _records(arns: Arns) -> Document:
    return document(
        allow("Bundle", ["s3:PutObject"], [arns.objects(arns.names.results_bucket, f"{PODS_PREFIX}{POD}/")])
    )


def _nodes(arns: Arns) -> Document:
    """Heal: reboot, replace through the node group, say so to EC2."""
    own = {"StringEquals": {f"aws:ResourceTag/{TAG_CLUSTER}": arns.names.cluster}}
    group = arns.place.arn("eks", f"nodegroup/{arns.names.kubernetes_cluster}/*/*")
    return document(
        allow("Look", _LOOK),
        allow("Cluster", ["eks:DescribeCluster"], [arns.place.arn("eks", f"cluster/{arns.names.kubernetes_cluster}")]),
        allow("NodeGroups", ["eks:DescribeNodegroup"], [group]),
        allow("ReplaceNodes", of("autoscaling", *REPLACE), [arns.managed_node_group()]),
        allow("HealNodes", of("ec2", *HEAL), [arns.instances()], own),
    )
