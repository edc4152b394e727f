"""The Kubernetes example under the stand-in engine: what the program asks AWS for. Ids and AWS' answers are invented."""

import base64
import json

import pytest

from flightline import contract
from flightline.kubernetes import training
from infra.components.pod_roles import OWN_ACCOUNTS
from tests.infra import program, stacks

SLURMS_OWN = (
    "flightline:infra:HeadNode",
    "flightline:infra:GpuNodes",
    "flightline:infra:Access",
    "aws:autoscaling/group:Group",
    "aws:autoscaling/lifecycleHook:LifecycleHook",
    "aws:ec2/instance:Instance",
    "aws:iam/instanceProfile:InstanceProfile",
)


def run():
    return program.planned("eks")


def one(name):
    return run().one(name).props


def test_the_cluster_is_private_but_for_named_ranges_and_lets_in_who_is_named():
    cluster = one("kubernetes-cluster")
    assert cluster["version"] == "1.36"
    assert cluster["vpcConfig"]["publicAccessCidrs"] == ["203.0.113.0/24"]
    assert len(cluster["vpcConfig"]["subnetIds"]) == 2, "EKS wants two zones"
    assert cluster["bootstrapSelfManagedAddons"] is False
    assert set(cluster["enabledClusterLogTypes"]) == {"api", "audit", "authenticator", "controllerManager", "scheduler"}
    assert cluster["encryptionConfig"]["provider"]["keyArn"] == run().one("kubernetes-key").arn
    assert one("kubernetes-key")["enableKeyRotation"] is True
    assert one("kubernetes-log")["retentionInDays"] == 90
    assert [made.props["principalArn"] for made in run().of("aws:eks/accessEntry:AccessEntry")] == [
        "arn:aws:iam::123456789012:role/ml-platform"
    ]
    (policy,) = run().of("aws:eks/accessPolicyAssociation:AccessPolicyAssociation")
    assert policy.props["policyArn"].endswith("AmazonEKSClusterAdminPolicy")


def test_eks_drains_its_nodes_and_ends_no_pod_by_force():
    """EKS holds and drains a node of its group by a hook of its own; training pods have time for a checkpoint."""
    groups = run().of("aws:eks/nodeGroup:NodeGroup")
    assert [made.props["forceUpdateVersion"] for made in groups] == [False, False]
    refused = program.run("eks", changes={"drainMinutes": 60}).error
    assert "drainMinutes" in str(refused) and training.GRACE_S >= 120


def test_without_public_ranges_the_public_endpoint_is_closed_and_no_chart_installed():
    """From outside nobody could ask the API to install one."""
    versions = {"kubernetesAddOnVersions": ["vpc-cni=v1.20.4-eksbuild.2"]}
    done = program.run("eks", changes={"kubernetesPublicCidrs": [], "gpuNodeCount": 0, **versions})
    assert done.error is None
    vpc = done.one("kubernetes-cluster").props["vpcConfig"]
    assert vpc["endpointPublicAccess"] is False and "publicAccessCidrs" not in vpc
    assert [each.name for each in done.requests if "kubernetes:" in each.type_] == []
    sizes = done.one("nodes-group").props["scalingConfig"]
    assert (sizes["minSize"], sizes["desiredSize"], sizes["maxSize"]) == (0, 0, 16)
    made = {each.props["addonName"]: each.props.get("addonVersion") for each in done.of("aws:eks/addon:Addon")}
    assert made.pop("vpc-cni") == "v1.20.4-eksbuild.2" and set(made.values()) == {None}, (
        "pinned where the stack says so"
    )


def test_gpu_nodes_join_under_the_startup_taint_from_the_ec2_paths_template():
    group, template = one("nodes-group"), one("nodes-template")
    assert group["taints"] == [{"key": contract.KUBE_STARTUP_TAINT, "effect": "NO_SCHEDULE"}]
    assert group["labels"] == {contract.KUBE_GPU_LABEL: "true", "nvidia.com/gpu.present": "true"}
    assert (group["amiType"], group["capacityType"]) == ("AL2023_x86_64_NVIDIA", "ON_DEMAND")
    assert group["launchTemplate"]["id"] == run().one("nodes-template").id
    assert len(group["subnetIds"]) == 1, "EFA and a reservation stay in one zone"
    assert "instanceTypes" not in group, "the template names the type"
    ec2 = program.planned("p5-reservation").one("nodes-template").props
    same = ("instanceType", "capacityReservationSpecification", "monitoring", "ebsOptimized", "updateDefaultVersion")
    assert {key: template[key] for key in same} == {key: ec2[key] for key in same}
    for here, there in zip(template["networkInterfaces"], ec2["networkInterfaces"], strict=True):
        assert {**here, "securityGroups": 0} == {**there, "securityGroups": 0}


@pytest.mark.parametrize("name", ["nodes", "system"])
def test_a_template_says_nothing_that_a_node_group_refuses(name):
    """EKS user guide, "Customize managed nodes with launch templates": these stand in the node group, or EKS brings them."""
    template = one(f"{name}-template")
    assert not {"imageId", "iamInstanceProfile", "keyName", "vpcSecurityGroupIds"} & set(template)
    groups = template["networkInterfaces"][0]["securityGroups"]
    assert groups == [run().one("fabric-group").id, f"sg-{run().one('kubernetes-cluster').id.split('-')[-1]}"]
    assert template["metadataOptions"]["httpPutResponseHopLimit"] == 1, "pods have roles of their own"
    assert template["blockDeviceMappings"][0]["deviceName"] == "/dev/xvda"
    assert "maxPods" in base64.b64decode(template["userData"]).decode()


def test_nodes_without_a_gpu_are_untainted_and_in_both_zones():
    group = one("system-group")
    assert "taints" not in group
    assert group["amiType"] == "AL2023_x86_64_STANDARD" and len(group["subnetIds"]) == 2
    assert group["scalingConfig"] == {"minSize": 1, "desiredSize": 3, "maxSize": 6}
    tags = {part["resourceType"]: part["tags"] for part in one("system-template")["tagSpecifications"]}
    assert tags["instance"][contract.TAG_ROLE] == contract.ROLE_CPU


BLOCK = {"capacityType": "capacity-block"}
SPOT = {
    "capacityType": "spot",
    "capacityReservationId": "",
    "gpuInstanceType": "g6e.48xlarge",
    "spotInstanceTypes": ["g6.48xlarge"],
    "fsxEfa": False,
    "efa": "off",
}


@pytest.mark.parametrize(
    ("changes", "kind", "market", "types"),
    [(BLOCK, "CAPACITY_BLOCK", "capacity-block", None), (SPOT, "SPOT", None, ["g6e.48xlarge", "g6.48xlarge"])],
    ids=["capacity-block", "spot"],
)
def test_each_way_of_buying_stands_where_eks_reads_it(changes, kind, market, types):
    done = program.run("eks", changes=changes)
    assert done.error is None
    group, template = done.one("nodes-group").props, done.one("nodes-template").props
    assert group["capacityType"] == kind
    assert template.get("instanceMarketOptions", {}).get("marketType") == market
    assert group.get("instanceTypes") == types
    assert ("instanceType" in template) == (types is None)


def test_nodes_come_after_what_makes_them_ready_and_pods_after_nodes():
    wanted = {"early-vpc-cni", "early-kube-proxy", "early-eks-pod-identity-agent", "node-role-nodes-ssm"}
    for name in ("nodes-group", "system-group"):
        assert wanted | {"network-private-1-out", "fabric-https-out"} <= run().before(name)
    assert {"system-group"} <= run().before("add-ons-coredns") and "nodes-group" not in run().before("add-ons-coredns")
    assert "kubernetes-log" in run().before("kubernetes-cluster"), "EKS would make it without a retention"


def test_nothing_of_slurm_or_of_nodes_that_boot_by_themselves_is_made():
    assert [made.name for type_ in SLURMS_OWN for made in run().of(type_)] == []
    assert "nodes-hook" not in {made.name for made in run().requests}
    for kept in ("Storage", "Tables", "Notifications", "Functions", "Monitoring", "FileSystem", "Spending"):
        assert run().of(f"flightline:infra:{kept}"), kept


def test_every_service_account_has_one_role_by_pod_identity():
    made = {
        (each.props["namespace"], each.props["serviceAccount"]): each.props["roleArn"]
        for each in run().of("aws:eks/podIdentityAssociation:PodIdentityAssociation")
    }
    assert set(made) == set(OWN_ACCOUNTS.values())
    assert set(made.values()) == {run().one(f"pods-{key}").arn for key in OWN_ACCOUNTS}
    trainer = json.loads(one("pods-trainer-data")["policy"])
    assert "s3:GetObject" in {action for each in trainer["Statement"] for action in each["Action"]}
    roles = [each for each in run().of("aws:eks/addon:Addon") if each.props.get("podIdentityAssociations")]
    assert {each.props["addonName"] for each in roles} == {"vpc-cni", "aws-ebs-csi-driver", "aws-fsx-csi-driver"}


def test_the_outputs_say_what_the_cluster_has_and_lacks():
    outputs = run().outputs
    assert outputs["orchestrator"] == "eks"
    assert outputs["node_group"].startswith("eks-train-eks-gpu-"), "the Auto Scaling group that EKS made"
    assert outputs["fsx_id"].startswith("fs-")
    assert (outputs["image_id"], outputs["head_instance_id"]) == ("", "")


def test_only_what_is_still_measured_rings():
    alarms = [made.props["name"] for made in run().of("aws:cloudwatch/metricAlarm:MetricAlarm")]
    assert sorted(name.removeprefix("train-eks-monitor-") for name in alarms) == [
        *("alerts-lost", "bad-events", "dead-letters", "function-errors")
    ]


def test_pods_of_other_accounts_never_get_the_nodes_role():
    place = stacks.place("eks")
    for made in run().of("aws:iam/role:Role"):
        trust = json.loads(made.props["assumeRolePolicy"])["Statement"][0]
        if trust["Principal"] == {"Service": "pods.eks.amazonaws.com"}:
            assert trust["Condition"]["StringEquals"]["aws:SourceAccount"] == place.account, made.name


def test_charts_are_pinned_and_run_on_nodes_that_have_not_said_go_yet():
    made = {each.props["chart"]: each.props for each in run().of("kubernetes:helm.sh/v3:Release")}
    assert set(made) == {
        *("nvidia-device-plugin", "aws-efa-k8s-device-plugin", "dcgm-exporter", "kube-prometheus-stack"),
        "prometheus-adapter",
    }
    for name, props in made.items():
        assert props["atomic"] is True and props["createNamespace"] is True, name
        if name not in ("kube-prometheus-stack", "prometheus-adapter"):
            assert props["values"]["tolerations"] == [{"operator": "Exists"}], name
            assert props["values"]["nodeSelector"] == {contract.KUBE_GPU_LABEL: "true"}, name
    efa = made["aws-efa-k8s-device-plugin"]["values"]["supportedInstanceLabels"]
    assert efa == {"keys": [contract.KUBE_TYPE_LABEL], "values": ["p5.48xlarge"]}
    assert "kubernetes-role-ml-platform-admin" in run().before("charts-dcgm-exporter")
    assert "charts-kube-prometheus-stack" in run().before("charts-dcgm-exporter"), (
        "its ServiceMonitor is a kind of that"
    )


def test_the_api_is_asked_with_a_token_of_the_moment():
    config = json.loads(one("charts-api")["kubeconfig"])
    (user,) = config["users"]
    assert user["user"]["exec"]["command"] == "aws" and set(user["user"]) == {"exec"}
    assert config["clusters"][0]["cluster"]["server"].startswith("https://")


def test_prometheus_keeps_what_it_has_on_an_encrypted_volume():
    values = one("charts-kube-prometheus-stack")["values"]
    claim = values["prometheus"]["prometheusSpec"]["storageSpec"]["volumeClaimTemplate"]["spec"]
    (made,) = values["extraManifests"]
    assert claim["storageClassName"] == made["metadata"]["name"] and made["parameters"]["encrypted"] == "true"


def test_subnets_are_found_by_load_balancers_and_karpenter():
    subnets = {made.name: made.props["tags"] for made in run().of("aws:ec2/subnet:Subnet")}
    for name, tags in subnets.items():
        public = "-public-" in name
        assert ("kubernetes.io/role/elb" in tags) is public
        assert (tags.get("karpenter.sh/discovery") == "train-eks") is not public
    others = [made.props["tags"] for made in program.planned("p5-reservation").of("aws:ec2/subnet:Subnet")]
    assert not any(key.startswith(("kubernetes.io", "karpenter")) for tags in others for key in tags)
