"""Settings and plan of an EKS cluster: what is refused, and what follows from what is taken."""

import json
from email import message_from_string

import pytest

from flightline import contract
from infra.config.declare import declared
from infra.config.errors import ConfigError
from infra.config.kubernetes import WITHOUT_MEANING
from infra.config.model import BY_NAME, KubernetesSettings
from infra.config.reader import read
from infra.planning import endpoints, iam, instance_types, kubernetes, subnets
from infra.planning.monitoring import rules
from infra.planning.names import KUBERNETES_ROLES
from tests.infra.plans.test_ends import others
from tests.infra.stacks import offer, place, planned_names, settings

REGION = "us-east-1"
ADMIN = "arn:aws:iam::123456789012:role/ml-platform"
EKS = {"orchestrator": "eks", "kubernetesAdmins": [ADMIN]}
ON_DEMAND = {"capacityType": "on-demand", "capacityReservationId": ""}
PRIVATE = {"natGateways": "none", "interfaceEndpoints": True}


def mistakes(**values):
    """Key -> what was wanted, of every mistake."""
    try:
        read({**EKS, **values}, REGION, lambda _: offer(REGION))
    except ConfigError as error:
        return {one.key: one.wanted for one in error.mistakes}
    return {}


def chosen(**values):
    return read({**EKS, **values}, REGION, lambda _: offer(REGION))


def test_a_cluster_with_defaults_only_needs_its_administrators():
    found = mistakes(kubernetesAdmins=[])
    assert list(found) == ["kubernetesAdmins"] and "nobody else gets in" in found["kubernetesAdmins"]
    modest = chosen()
    assert modest.on_kubernetes and not modest.head.enabled
    assert modest.kubernetes.public_cidrs == () and not modest.kubernetes.charts


REFUSED = [
    ("kubernetesAdmins", {"kubernetesAdmins": ["arn:aws:sts::123456789012:assumed-role/x/me"]}, "not of a session"),
    ("kubernetesAdmins", {"kubernetesAdmins": ["arn:aws:iam::123456789012:root"]}, "not of a session or an account"),
    ("kubernetesAdmins", {"kubernetesAdmins": [ADMIN, ADMIN]}, "each ARN once"),
    ("kubernetesPublicCidrs", {"kubernetesPublicCidrs": ["0.0.0.0/0"]}, "never open to the world"),
    ("kubernetesPublicCidrs", {"kubernetesPublicCidrs": ["128.0.0.0/1"]}, "never open to the world"),
    ("kubernetesPublicCidrs", {"kubernetesPublicCidrs": ["10.0.0.0/8"]}, "a public block"),
    ("kubernetesPublicCidrs", {"kubernetesPublicCidrs": ["::/0"]}, "an IPv4 block"),
    ("kubernetesPublicCidrs", {"kubernetesPublicCidrs": [f"203.0.113.{n}/32" for n in range(41)]}, "at most 40"),
    ("kubernetesCharts", {**PRIVATE, "kubernetesCharts": "on"}, "natGateways one"),
    ("kubernetesNodeRelease", {"kubernetesNodeRelease": "latest"}, "a release such as"),
    ("kubernetesNodeRelease", {"kubernetesNodeRelease": "1.35.2-20260610"}, "a release for kubernetesVersion, 1.36"),
    ("kubernetesAddOnVersions", {"kubernetesAddOnVersions": ["cilium=v1.2.3-eksbuild.1"]}, "with one of vpc-cni, "),
    ("kubernetesAddOnVersions", {"kubernetesAddOnVersions": ["vpc-cni=latest"]}, "a version such as"),
    ("kubernetesAddOnVersions", {"kubernetesAddOnVersions": ["vpc-cni=v1.20.4-eksbuild.2"] * 2}, "each add-on once"),
    ("cpuInstanceType", {"cpuInstanceType": "big"}, "an EC2 type"),
    ("cpuNodeMaximum", {"cpuNodeCount": 6}, "cpuNodeCount (6) or more"),
    ("gpuInstanceType", {"gpuInstanceType": "trn1.32xlarge"}, "NVIDIA GPUs"),
    ("privateSubnetCidrs", {"privateSubnetCidrs": ["10.0.101.0/24"]}, "2 blocks, one for each availability zone"),
    ("privateSubnetCidrs", {"gpuNodeCount": 3}, "a first block with 263 addresses: 3 GPU nodes and 4 others with 33"),
    ("privateSubnetCidrs", {"podsPerNode": 110}, "others with 113 each (podsPerNode)"),
    ("natGateways", {"natGateways": "none"}, "interfaceEndpoints true"),
    ("availabilityZones", {"capacityType": "capacity-block", "gpuInstanceType": "p5.48xlarge",
                          "capacityReservationId": "cr-0123456789abcdef0"}, "the zone of the capacity-block"),
    ("spotInstanceTypes", {"capacityType": "capacity-block", "gpuInstanceType": "p5.48xlarge", "availabilityZones": ["us-east-1a"],
                           "capacityReservationId": "cr-0123456789abcdef0", "spotInstanceTypes": ["p5e.48xlarge"]},
     "nothing with capacityType capacity-block"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "values", "says"), REFUSED)
def test_a_mistake_is_refused_by_its_key_and_says_what_is_wanted(key, values, says):
    found = mistakes(**values)
    assert list(found) == [key], found
    assert says in found[key]


@pytest.mark.parametrize("key", WITHOUT_MEANING)
def test_what_a_cluster_does_not_read_is_refused(key):
    value = "node.pyz" if key == "nodePackage" else next(others(BY_NAME[key], BY_NAME[key].default))
    assert WITHOUT_MEANING[key] in mistakes(**{key: value}).get(key, "")


@pytest.mark.parametrize("orchestrator", ["none", "slurm"])
def test_what_only_a_cluster_reads_is_refused_without_one(orchestrator):
    given = {"kubernetesVersion": "1.35", "cpuNodeCount": 3, "podsPerNode": 20, "kubernetesAdmins": [ADMIN]}
    found = mistakes(**given, orchestrator=orchestrator)
    assert set(found) == set(given)
    assert all(text == f"nothing with orchestrator {orchestrator}, or eks there" for text in found.values())
    assert {key.name for key in declared(KubernetesSettings).values()} >= set(given)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({}, False),
        ({"kubernetesPublicCidrs": ["203.0.113.0/24"]}, True),
        ({"kubernetesPublicCidrs": ["203.0.113.0/24"], "kubernetesCharts": "off"}, False),
        ({"kubernetesCharts": "on"}, True),
        ({"kubernetesPublicCidrs": ["203.0.113.0/24"], **PRIVATE}, False),
    ],
)
def test_charts_are_installed_where_that_can_work(values, wanted):
    assert chosen(**values).kubernetes.charts is wanted


def test_a_subnet_that_is_just_large_enough_is_taken():
    fits = chosen(gpuNodeCount=1, cpuNodeMaximum=4, podsPerNode=30)
    needed = kubernetes.addresses(5, fits.kubernetes.pods_per_node)
    assert needed == 5 * 33 + 32 <= subnets.addresses("10.0.101.0/24")


def test_spot_nodes_in_two_zones_take_addresses_in_both():
    spot = {"capacityType": "spot", "spotZones": 2, "efa": "off", "gpuNodeCount": 3, "privateSubnetCidrs": []}
    blocks = ["10.0.32.0/20", "10.0.101.0/24"]
    assert "a second block with 263" in mistakes(**{**spot, "privateSubnetCidrs": blocks})["privateSubnetCidrs"]


@pytest.mark.parametrize("stack", ["eks"])
def test_every_way_of_buying_has_a_name_of_a_node_groups(stack):
    assert set(kubernetes.CAPACITY_TYPES) == set(instance_types.CAPACITIES)
    assert set(kubernetes.CAPACITY_TYPES.values()) == {"ON_DEMAND", "SPOT", "CAPACITY_BLOCK"}
    assert settings(stack).nodes.capacity.kind == "reservation"


@pytest.mark.parametrize(
    ("architecture", "nvidia", "wanted"),
    [("x86_64", True, "AL2023_x86_64_NVIDIA"), ("arm64", True, "AL2023_ARM_64_NVIDIA"),
     ("x86_64", False, "AL2023_x86_64_STANDARD"), ("arm64", False, "AL2023_ARM_64_STANDARD")],
)  # fmt: skip
def test_images_are_named_as_eks_names_them(architecture, nvidia, wanted):
    assert kubernetes.image_type(architecture, nvidia) == wanted


def test_a_nodes_user_data_is_one_part_that_nodeadm_reads():
    message = message_from_string(kubernetes.node_config(40))
    _, part = message.walk()
    assert message.get_content_type() == "multipart/mixed"
    assert part.get_content_type() == "application/node.eks.aws"
    config = json.loads(str(part.get_payload()))
    assert config["spec"] == {"kubelet": {"config": {"maxPods": 40}}}, "EKS adds the cluster itself"


def test_every_add_on_that_calls_aws_has_its_own_role():
    made = kubernetes.add_ons(30, {"flightline:cluster": "c"})
    assert [one.name for one in made] == [
        *("vpc-cni", "kube-proxy", "eks-pod-identity-agent", "coredns"),
        *("aws-ebs-csi-driver", "aws-fsx-csi-driver", "metrics-server"),
    ]
    assert {one.role for one in made if one.account} <= set(KUBERNETES_ROLES)
    assert all(bool(one.account) == bool(one.role) for one in made)
    # Before a node can be ready it needs its network; the DNS needs a node to run on.
    assert [one.name for one in made if one.early] == ["vpc-cni", "kube-proxy", "eks-pod-identity-agent"]
    (cni,) = [json.loads(one.configuration or "") for one in made if one.name == "vpc-cni"]
    assert cni["enableNetworkPolicy"] == "true"
    (disks,) = [json.loads(one.configuration or "") for one in made if one.name == "aws-ebs-csi-driver"]
    assert disks["controller"]["extraVolumeTags"] == {"flightline:cluster": "c"}, "leftovers finds them by it"
    assert int(cni["env"]["WARM_IP_TARGET"]) == kubernetes.WARM_ADDRESSES


def test_gpu_nodes_carry_the_agents_label():
    assert kubernetes.gpu_labels()[contract.KUBE_GPU_LABEL] == contract.KUBE_LABEL_TRUE
    assert f"{contract.KUBE_STARTUP_TAINT}:NoSchedule" == contract.KUBE_KUBELET_TAINT
    assert kubernetes.TAINT_EFFECT.replace("_", "").lower() == contract.KUBE_TAINT_EFFECT.lower()


def test_without_nat_nodes_and_pods_reach_what_they_call():
    found = set(endpoints.interfaces(False, kubernetes=True))
    assert {"ec2", "ecr.api", "ecr.dkr", "sts", "eks", "eks-auth", "autoscaling", "ssm"} <= found
    documents = iam.kubernetes_policies(True, True, planned_names("eks"), place("eks"), "arn:aws:kms:::key/x")
    actions = {
        action
        for purposes in documents.values()
        for document in purposes.values()
        for statement in document["Statement"]
        for action in statement["Action"]
    }
    named = {"cloudwatch": "monitoring", "kms": "", "s3": "", "s3express": "", "dynamodb": ""}
    assert {named.get(service, service) for service in {one.split(":")[0] for one in actions}} - {""} <= found


def test_only_the_named_service_account_of_the_cluster_gets_a_role():
    (statement,) = iam.pod_trust("train-eks", "flightline", "flightline-node", place("eks"))["Statement"]
    assert statement["Principal"] == {"Service": "pods.eks.amazonaws.com"}
    assert statement["Action"] == ["sts:AssumeRole", "sts:TagSession"]
    assert statement["Condition"]["StringEquals"] == {
        "aws:SourceAccount": "123456789012",
        "aws:RequestTag/eks-cluster-name": "train-eks",
        "aws:RequestTag/kubernetes-namespace": "flightline",
        "aws:RequestTag/kubernetes-service-account": "flightline-node",
    }


def test_launches_are_told_of_the_group_that_eks_makes():
    (launch,) = [one for one in rules(planned_names("eks"), agent=False) if one.key == "launch"]
    assert json.loads(launch.pattern)["detail"] == {"AutoScalingGroupName": [{"prefix": "eks-train-eks-gpu-"}]}
    assert "watch" not in {one.key for one in rules(planned_names("eks"), agent=False)}
