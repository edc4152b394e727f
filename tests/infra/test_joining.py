"""A program of one's own, and stacks that join what is there: what is given is not made, and what hangs on it is its.

The engine is a stand-in (tests/infra/engine.py); tests/infra/test_engine.py previews the same program where the CLI is.
"""

import hashlib
import re
import runpy
from typing import Any, cast

import pulumi
import pulumi_aws as aws
import pytest
import yaml

import flightline_pulumi as fl
from flightline import contract
from infra.config.model import BY_NAME
from infra.images import FoundImage
from infra.policies import PolicyContext, judge, judge_stack
from tests.infra import engine, program, schema, stacks
from tests.infra.program import JOINED, SUBNETS, TOPIC, VPC

TEMPLATE = stacks.ROOT / "flightline_pulumi" / "template"
OF_A_NETWORK = ("Vpc", "Subnet", "InternetGateway", "NatGateway", "RouteTable", "Route", "DefaultSecurityGroup")
NETWORK = {f"aws:ec2/{kind[0].lower()}{kind[1:]}:{kind}" for kind in OF_A_NETWORK}
GROUP = "sg-01234567"


def own_vpc():
    """The id that the stand-in invents for the program's VPC."""
    return "vpc-" + hashlib.sha256(b"aws:ec2/vpc:Vpc|own").hexdigest()[:17]


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    return program.rendered(tmp_path_factory.mktemp("made"))


def run_template(folder, preview):
    config = yaml.safe_load((folder / "Pulumi.yaml").read_text())["template"]["config"]
    subnet = {"vpcId": own_vpc(), "availabilityZone": "us-east-1a", "id": "subnet"}
    return engine.run(
        lambda: program.packaged(lambda: runpy.run_path(str(folder / "__main__.py"), run_name="__main__")),
        calls={**program.answers("us-east-1"), "aws:ec2/getSubnet:getSubnet": subnet},
        config={key: value["default"] for key, value in config.items()},
        preview=preview,
    )


@pytest.mark.parametrize("preview", [True, False], ids=["preview", "up"])
def test_a_program_of_thirty_lines_with_its_own_vpc_plans_clean(rendered, preview):
    lines = (rendered / "__main__.py").read_text().splitlines()
    assert len(lines) <= 30 and yaml.safe_load((rendered / "Pulumi.yaml").read_text())["name"] == "trainers"
    run = run_template(rendered, preview)
    assert run.error is None, run.error
    inside = [one for one in run.custom if "flightline:infra:" in one.parent]
    own = [one for one in run.custom if one not in inside]
    assert {"GpuCluster", "Network", "Fabric"} <= {one.type_.rsplit(":", 1)[-1] for one in run.requests}
    assert len(inside) > 100 and {one.type_ for one in own} & NETWORK and not {one.type_ for one in inside} & NETWORK
    assert [text for one in run.custom for text in schema.mistakes(one)] == []
    site = PolicyContext(True, frozenset(contract.COMMON_TAGS))
    ours = tuple(one for one in run.registered if one.name not in {one.name for one in own} and not preview)
    assert [str(found) for one in ours for found in judge(one, site)] == []
    assert {found.rule for found in judge_stack(ours)} <= {"locks"}, "those are of the stack's own program"


def test_what_the_program_gets_hangs_off_its_own_network(rendered):
    run = run_template(rendered, preview=False)
    subnet = run.one("private").id
    assert run.one("cluster-nodes-group").props["vpcZoneIdentifiers"] == [subnet]
    vpcs = {one.props["vpcId"] for one in run.custom if "vpcId" in one.props}
    assert vpcs == {own_vpc()}
    assert {"private", "routes", "own"} <= run.before("cluster-nodes-group")
    (interface,) = run.one("cluster-nodes-template").props["networkInterfaces"]
    assert interface["securityGroups"] == [run.one("fabric-group").id]
    gateways = run.of("aws:ec2/vpcEndpoint:VpcEndpoint")
    (table,) = [one for one in run.of("aws:ec2/routeTable:RouteTable") if one.name == "routes"]
    assert {tuple(one.props["routeTableIds"]) for one in gateways} == {(table.id,)}


def test_the_page_begins_with_the_program():
    page = (stacks.ROOT / "docs" / "infra.md").read_text()
    assert re.findall(r"```python\n(.*?)```", page, re.S)[0] == (TEMPLATE / "__main__.py").read_text()


def test_two_clusters_of_one_program_share_a_network():
    def main():
        network = None
        for name in ("one", "two"):
            plan = fl.plan({"clusterName": name})
            network = network or fl.Network("network", plan)
            fl.GpuCluster(name, plan, fl.GpuClusterArgs(network=network))

    run = engine.run(
        lambda: program.packaged(main), calls=program.answers("us-east-1"), config={"aws:region": "us-east-1"}
    )
    assert run.error is None, run.error
    assert len({one.urn for one in run.requests}) == len(run.requests)
    assert [one.name for one in run.of("aws:ec2/vpc:Vpc")] == ["network-vpc"]
    assert [one.name for one in run.requests if one.aliased and "flightline:infra:" in one.type_] == []


OF_A_NEW_CLUSTER = (
    *("kubernetesAdmins", "kubernetesPublicCidrs", "cpuNodeCount", "cpuNodeMaximum"),
    *("privateSubnetCidrs", "natGateways"),
)
"""What Pulumi.eks.yaml says of a cluster and a network that it makes."""
STACKS: dict[str, tuple[str, dict[str, Any], set[str]]] = {
    "network": ("dev", {**JOINED, "interfaceEndpoints": True, "existingEndpoints": ["ssm"]}, NETWORK),
    "tables": ("dev", {**JOINED, "routeTableIds": ["rtb-01234567"], "existingEndpoints": ["dynamodb"]}, NETWORK),
    "group": ("dev", {**JOINED, "securityGroupId": GROUP}, {"aws:ec2/securityGroup:SecurityGroup"}),
    "file system": ("dev", {**JOINED, "fsxId": "fs-01234567"}, {"aws:fsx/lustreFileSystem:LustreFileSystem"}),
    "topic": ("dev", TOPIC, {"aws:sns/topic:Topic", "aws:kms/key:Key"}),
    "cluster": (
        "eks",
        {**JOINED, "eksCluster": "theirs", **{key: BY_NAME[key].default for key in OF_A_NEW_CLUSTER}},
        {"aws:eks/cluster:Cluster", "aws:eks/addon:Addon", "aws:eks/accessEntry:AccessEntry"},
    ),
}


@pytest.mark.parametrize("name", STACKS)
def test_a_stack_makes_nothing_of_what_it_joins(name):
    stack, changes, kinds = STACKS[name]
    run = program.run(stack, changes=changes)
    assert run.error is None, run.error
    assert {one.type_ for example in ("full", "eks") for one in program.example(example).requests} >= kinds
    assert [one.name for one in run.requests if one.type_ in kinds] == []
    assert contract.mistakes(run.outputs) == []


def test_what_is_joined_is_used():
    run = program.run("dev", changes={**STACKS["network"][1], "securityGroupId": GROUP, "fsxId": "fs-01234567"})
    assert run.outputs["vpc_id"] == VPC and run.outputs["private_subnet_ids"] == [*SUBNETS]
    assert run.outputs["fabric_security_group_id"] == GROUP and run.outputs["fsx_id"] == "fs-01234567"
    assert run.one("nodes-group").props["vpcZoneIdentifiers"] == [SUBNETS[0]]
    services = {one.props["serviceName"].rsplit(".", 1)[1] for one in run.of("aws:ec2/vpcEndpoint:VpcEndpoint")}
    assert "logs" in services and not {"ssm", "s3"} & services
    (rule,) = [one for one in run.custom if one.name.endswith("interfaces-https")]
    assert rule.props["cidrIpv4"] == "172.31.0.0/16", "the range that the VPC has"
    run = program.run("dev", changes=STACKS["tables"][1])
    (gateway,) = run.of("aws:ec2/vpcEndpoint:VpcEndpoint")
    assert gateway.props["serviceName"].endswith(".s3") and gateway.props["routeTableIds"] == ["rtb-01234567"]


def test_nodes_of_several_zones_are_in_the_subnets_of_those():
    changes = {**JOINED, "spotZones": 2, "efa": "off", "placementGroup": "none"}
    run = program.run("spot", changes=changes)
    assert run.error is None, run.error
    assert run.one("nodes-group").props["vpcZoneIdentifiers"] == [*SUBNETS]
    run = program.run("spot", changes={**changes, "subnetIds": [*reversed(SUBNETS)]})
    # Both are wrong, and either answer may come first.
    told = str(run.error)
    assert any(f"in us-west-2{saw}; wanted one in us-west-2{wanted}" in told for saw, wanted in ("ab", "ba"))


def test_buckets_and_a_topic_that_are_there_stand_in_every_right():
    changes = {"dataBucket": "theirs-data", "checkpointsBucket": "theirs-saves", **STACKS["topic"][1]}
    run, before = program.run("dev", changes=changes), program.planned("dev")
    made = {one.props["bucket"] for one in run.of("aws:s3/bucket:Bucket")}
    assert not made & {"theirs-data", "theirs-saves"} and len(made) == len(before.of("aws:s3/bucket:Bucket")) - 2
    said = "\n".join(str(one.props) for one in run.requests)
    for word in ("theirs-data", "theirs-saves", "sns:us-east-1:123456789012:theirs", TOPIC["alertsTopicKey"]):
        assert word in said
    for output in ("data_bucket", "checkpoints_bucket", "alerts_topic_arn"):
        assert before.outputs[output] not in said, "a right on what is not there"


def test_an_eks_cluster_that_is_there_gets_gpu_nodes_only():
    run = program.run("eks", changes=STACKS["cluster"][1])
    (group,) = run.of("aws:eks/nodeGroup:NodeGroup")
    assert group.props["clusterName"] == "theirs" and group.name == "nodes-group"
    assert "sg-theirs" in run.one("nodes-template").props["networkInterfaces"][0]["securityGroups"]
    pods = run.of("aws:eks/podIdentityAssociation:PodIdentityAssociation")
    assert {one.props["clusterName"] for one in pods} == {"theirs"}


def plan(**changes):
    return stacks.plan("dev", FoundImage("ami-1", "x86_64", "/dev/sda1", 0), **changes)


FSX = "fs-01234567"
NODES: dict[str, Any] = {"user_data": "x", "profile_name": "p", "security_group_ids": [GROUP]}


@pytest.mark.parametrize(
    ("component", "changes", "args", "words"),
    [
        (fl.Network, {}, fl.NetworkArgs(vpc_id=VPC), "saw subnet_ids: 0 beside a VPC"),
        (fl.Network, {}, fl.NetworkArgs(subnet_ids=SUBNETS), "saw subnet_ids: it without a VPC"),
        (fl.Fabric, {}, fl.FabricArgs(), "saw neither vpc_id nor"),
        (fl.Fabric, {}, fl.FabricArgs(vpc_id=VPC, security_group_id=GROUP), "saw both vpc_id and"),
        (fl.FileSystem, {}, fl.FileSystemArgs(vpc_id=VPC), "saw no size and no file_system_id"),
        (fl.FileSystem, {"fsxSizeGib": 1200}, fl.FileSystemArgs(vpc_id=VPC), "subnet_id and fabric_group_id to"),
        (fl.FileSystem, {}, fl.FileSystemArgs(file_system_id=FSX, vpc_id=VPC), "saw file_system_id beside vpc_id"),
        (fl.GpuNodes, {}, fl.GpuNodesArgs(subnet_ids=[], **NODES), "saw no subnet"),
        (fl.EksCluster, {}, SUBNETS[:1], "saw 1 subnets"),
        (
            fl.GpuCluster,
            {},
            fl.GpuClusterArgs(eks_cluster=cast("fl.EksCluster", "one")),
            "wanted none with orchestrator none",
        ),
    ],
)
def test_a_component_refuses_what_is_missing_or_contradicts(component, changes, args, words):
    error = engine.run(lambda: component("mine", plan(**changes), args)).error
    assert isinstance(error, pulumi.RunError) and str(error).startswith("mine: saw ") and words in str(error), error
    assert "; wanted " in str(error) and "; do: " in str(error)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"vpcId": "vpc-other"}, " in vpc-other; wanted a subnet of vpc-"),
        (
            {"availabilityZone": "us-east-1c"},
            "in us-east-1c; wanted one in us-east-1a: subnets stand in the order",
        ),
    ],
)
def test_a_subnet_of_another_vpc_or_zone_is_refused_before_a_node_is_made(found, words):
    said = {"vpcId": VPC, "availabilityZone": "us-east-1a", "id": "subnet", **found}
    run = program.run("dev", changes=JOINED, said={"aws:ec2/getSubnet:getSubnet": said})
    assert isinstance(run.error, pulumi.RunError) and words in str(run.error), run.error
    assert run.of("aws:autoscaling/group:Group") == []


def test_components_alone_join_what_the_program_made():
    def main():
        found = plan()
        vpc = aws.ec2.Vpc("own", cidr_block="10.20.0.0/16")
        opts = pulumi.ResourceOptions(parent=vpc)
        fl.Fabric("fabric", found, fl.FabricArgs(vpc_id=vpc.id), opts)
        fl.FileSystem("lustre", found, fl.FileSystemArgs(file_system_id=FSX))
        fl.Alerts("alerts", plan(**TOPIC, alertEmails=["ops@example.com"]))
        fl.Results("results", plan(dataBucket="theirs", checkpointsBucket="saves"))

    run = engine.run(main)
    assert run.error is None, run.error
    assert run.one("fabric-group").props["vpcId"] == run.one("own").id
    assert run.of("flightline:infra:Fabric")[0].parent == run.one("own").urn
    made = {one.name for one in run.custom}
    assert not {"lustre-lustre", "lustre-group", "alerts-alerts", "alerts-key"} & made
    assert "alerts-email-ops@example.com" in made
    assert {name for name in made if name.endswith("-bucket")} == {"results-results-bucket", "results-transfer-bucket"}
