"""What an EKS cluster is made of: names that AWS gives, add-ons, addresses, labels and taints of its node groups.

Sources, read 2026-11: EKS user guide ("Customize managed nodes with launch templates", "Create a managed node group
with Capacity Blocks for ML", "Use EKS-optimized accelerated AMIs", "AWS add-ons", "View Amazon EKS networking
requirements").
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from flightline import contract
from infra.planning.instance_types import CAPACITY_BLOCK, ON_DEMAND, RESERVATION, SPOT

CAPACITY_TYPES: Mapping[str, str] = MappingProxyType(
    {ON_DEMAND: "ON_DEMAND", SPOT: "SPOT", RESERVATION: "ON_DEMAND", CAPACITY_BLOCK: "CAPACITY_BLOCK"}
)
"""What a managed node group calls a way of buying; a reservation is named in the launch template."""

ROOT_DEVICE = "/dev/xvda"
"""Of the AL2023 images."""

TAINT_EFFECT = "NO_SCHEDULE"
"""NoSchedule, as EKS' API writes it."""

NVIDIA_LABEL = "nvidia.com/gpu.present"
"""The chart's affinity takes it without node feature discovery (NVIDIA/k8s-device-plugin, values.yaml)."""

LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")
OTHER_ADDRESSES = 32
"""Addresses of a subnet that the cluster's own interfaces (16 are advised), FSx and interface endpoints take."""

WARM_ADDRESSES = 2
"""Addresses that the CNI keeps ready on a node."""

CLUSTER_MANAGED = ("AmazonEKSClusterPolicy",)
NODE_MANAGED = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly")
"""AWS' policies that EKS asks of its own role and of a node's."""

ADMIN_POLICY = "arn:{}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
SYSTEM = "kube-system"
KARPENTER_TAG = "karpenter.sh/discovery"
"""The name that Karpenter's own guide gives it; its EC2NodeClass says which tag it looks for."""


@dataclass(frozen=True)
class AddOn:
    """An EKS add-on. account: its service account in kube-system where its pods call AWS; role: of KUBERNETES_ROLES.

    managed: AWS' policy for it, where there is one.

    early: needed before a node can be ready; the others need nodes to become active. version: None for EKS' default.
    """

    name: str
    early: bool = False
    account: str = ""
    role: str = ""
    managed: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)
    version: str | None = None

    @property
    def configuration(self) -> str | None:
        """Its configuration as the JSON that EKS takes; None for its defaults."""
        return json.dumps(dict(self.settings), sort_keys=True) if self.settings else None


def add_ons(pods_per_node: int, tags: Mapping[str, str], pins: Sequence[str] = ()) -> tuple[AddOn, ...]:
    """Every add-on of a cluster. One without a pin has EKS' default for the cluster's version when it is made.

    tags: of volumes that pods claim, which Pulumi does not know: `flightline leftovers` finds them by the cluster's.
    pins: NAME=VERSION.
    """
    versions = dict(pin.partition("=")[::2] for pin in pins)
    return tuple(replace(one, version=versions.get(one.name)) for one in _add_ons(pods_per_node, tags))


def _add_ons(pods_per_node: int, tags: Mapping[str, str]) -> tuple[AddOn, ...]:
    cni = {
        # Network policies of a namespace are nothing without it.
        "enableNetworkPolicy": "true",
        # Else a node keeps a whole interface of addresses ready, 50 on a large one.
        "env": {"WARM_IP_TARGET": str(WARM_ADDRESSES), "MINIMUM_IP_TARGET": str(min(10, pods_per_node))},
    }
    return (
        AddOn("vpc-cni", early=True, account="aws-node", role="vpc-cni", managed="AmazonEKS_CNI_Policy", settings=cni),
        AddOn("kube-proxy", early=True),
        AddOn("eks-pod-identity-agent", early=True),
        AddOn("coredns"),
        AddOn(
            "aws-ebs-csi-driver",
            account="ebs-csi-controller-sa",
            role="ebs-csi",
            managed="service-role/AmazonEBSCSIDriverPolicy",
            settings={"controller": {"extraVolumeTags": dict(tags)}},
        ),
        AddOn("aws-fsx-csi-driver", account="fsx-csi-controller-sa", role="fsx-csi"),
        AddOn("metrics-server"),
    )


ADD_ON_NAMES = tuple(one.name for one in _add_ons(10, {}))


def subnet_tags(cluster: str, public: bool) -> dict[str, str]:
    """By which load balancers and Karpenter find a subnet (EKS user guide, "View Amazon EKS networking...")."""
    if public:
        return {"kubernetes.io/role/elb": "1"}
    return {"kubernetes.io/role/internal-elb": "1", KARPENTER_TAG: cluster}


def addresses_of_node(pods_per_node: int) -> int:
    """Addresses that a node takes of its subnet with all its pods."""
    return 1 + pods_per_node + WARM_ADDRESSES


def addresses(nodes: int, pods_per_node: int) -> int:
    """Addresses that a subnet needs for these nodes, and for what stands beside them."""
    return nodes * addresses_of_node(pods_per_node) + OTHER_ADDRESSES


def image_type(of: str, nvidia: bool) -> str:
    """The EKS-optimized AL2023 image for an architecture."""
    return f"AL2023_{'ARM_64' if of == 'arm64' else 'x86_64'}_{'NVIDIA' if nvidia else 'STANDARD'}"


def gpu_labels() -> dict[str, str]:
    """Labels of a GPU node: the agent's, and the one by which NVIDIA's device plug-in knows its nodes."""
    return {contract.KUBE_GPU_LABEL: contract.KUBE_LABEL_TRUE, NVIDIA_LABEL: contract.KUBE_LABEL_TRUE}


def node_config(pods_per_node: int) -> str:
    """User data of a node: EKS adds the cluster's part to it, and nodeadm merges both."""
    config = {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {"kubelet": {"config": {"maxPods": pods_per_node}}},
    }
    # JSON is YAML.
    return (
        'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"\n\n'
        f"--//\nContent-Type: application/node.eks.aws\n\n{json.dumps(config, sort_keys=True)}\n\n--//--\n"
    )
