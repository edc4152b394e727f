"""Each component by itself under mocks: what it makes from its arguments, and what it makes only when asked."""

import json
from typing import cast

import pulumi
import pulumi_aws as aws
import pytest

from infra.components.access import Access
from infra.components.audit import Audit
from infra.components.bucket import Bucket
from infra.components.endpoints import Endpoints
from infra.components.fabric import Fabric, FabricArgs
from infra.components.file_system import FileSystem, FileSystemArgs
from infra.components.flow_logs import FlowLogs
from infra.components.gpu_nodes import GpuNodes, GpuNodesArgs
from infra.components.head_node import HeadNode
from infra.components.log_groups import LogGroups
from infra.components.network import Network
from infra.components.notifications import Notifications
from infra.components.spending import Spending
from infra.components.storage import Storage
from infra.config.model import FsxSettings
from infra.images import FoundImage
from infra.planning import efa, endpoints
from tests.infra import engine, program, schema, stacks

STACK = "p5-reservation"
NAMES = stacks.planned_names(STACK)
NO_PARENT = cast(pulumi.Resource, None)  # what a component makes is its own child wherever the component stands
SSH = {"accessMode": "ssh", "sshKeyName": "me"}


def plan(stack=STACK, **changes):
    return stacks.plan(stack, FoundImage("ami-1", "x86_64", "/dev/sda1", 0), **changes)


def build(make):
    """Run one component; every resource below it must be its child and take only what the SDK knows."""
    run = engine.run(make)
    assert run.error is None
    assert [text for request in run.custom for text in schema.mistakes(request)] == []
    assert all("flightline:infra:" in request.parent for request in run.custom)
    assert run.custom
    return run


def kinds(run):
    return sorted(request.type_.split(":")[-1] for request in run.custom)


def network(**changes):
    return build(lambda: Network("network", plan(**changes)))


@pytest.mark.parametrize(("nat", "gateways", "ways_out"), [("one", 1, 3), ("per-az", 2, 3), ("none", 0, 1)])
def test_network_ways_out(nat, gateways, ways_out):
    run = network(natGateways=nat, interfaceEndpoints=True, packageSource="mirror")
    assert len(run.of("aws:ec2/natGateway:NatGateway")) == gateways
    assert len(run.of("aws:ec2/route:Route")) == ways_out
    assert len(run.of("aws:ec2/routeTable:RouteTable")) == 3


def test_network_with_a_nat_for_each_zone_keeps_traffic_in_the_zone():
    run = network(natGateways="per-az")
    nat = {one.id: one.props["subnetId"] for one in run.of("aws:ec2/natGateway:NatGateway")}
    subnets = {one.id: one.props["availabilityZone"] for one in run.of("aws:ec2/subnet:Subnet")}
    for key in ("private-1", "private-2"):
        through = nat[run.one(f"network-{key}-out").props["natGatewayId"]]
        own = [one for one in run.of("aws:ec2/subnet:Subnet") if one.name == f"network-{key}"]
        assert subnets[through] == own[0].props["availabilityZone"]


def test_network_gives_no_public_address_by_default_and_empties_the_default_group():
    run = network()
    assert {one.props["mapPublicIpOnLaunch"] for one in run.of("aws:ec2/subnet:Subnet")} == {False}
    (group,) = run.of("aws:ec2/defaultSecurityGroup:DefaultSecurityGroup")
    assert group.props["ingress"] == [] and group.props["egress"] == []


def made_endpoints(*interfaces):
    args = (NO_PARENT, "vpc-1", ["rtb-1"], ["subnet-1"], endpoints.GATEWAYS, interfaces)
    return build(lambda: Endpoints("endpoints", plan(vpcCidr="10.0.0.0/16"), *args))


def test_endpoints_without_and_with_interfaces():
    few, more = made_endpoints(), made_endpoints("ssm", "logs")
    assert kinds(few) == ["VpcEndpoint"] * len(endpoints.GATEWAYS)
    assert len(more.of("aws:ec2/vpcEndpoint:VpcEndpoint")) == len(endpoints.GATEWAYS) + 2
    (rule,) = more.of("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule")
    assert (rule.props["cidrIpv4"], rule.props["fromPort"], rule.props["toPort"]) == ("10.0.0.0/16", 443, 443)


def test_flow_logs_write_to_a_group_that_forgets():
    run = build(lambda: FlowLogs("flow", plan(logRetentionDays=14), NO_PARENT, "vpc-1"))
    assert run.one("flow-log").props["retentionInDays"] == 14
    assert run.one("flow-vpc").props["logDestination"].endswith(f"log-group:{NAMES.flow_log_group}")
    assert run.one("flow-log").urn in run.one("flow-vpc").dependencies


def fabric(*cidrs):
    changes = {**SSH, "sshCidrs": cidrs, "orchestrator": "none"} if cidrs else {}
    return build(lambda: Fabric("fabric", plan(**changes), FabricArgs(vpc_id="vpc-1")))


def test_fabric_lets_everything_through_among_its_members_both_ways():
    run = fabric()
    group = run.one("fabric-group").id
    for name in ("fabric-self-in", "fabric-self-out"):
        props = run.one(name).props
        assert (props["securityGroupId"], props["referencedSecurityGroupId"], props["ipProtocol"]) == (
            group,
            group,
            "-1",
        )
    inward = run.of("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule")
    assert [one.name for one in inward] == ["fabric-self-in"]


def test_fabric_opens_ssh_to_named_ranges_only():
    run = fabric("10.1.2.0/24", "10.5.100.7/32")
    inward = run.of("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule")
    ranges = {one.props["cidrIpv4"] for one in inward if "cidrIpv4" in one.props}
    assert ranges == {"10.1.2.0/24", "10.5.100.7/32"}
    assert {one.props["fromPort"] for one in inward if "cidrIpv4" in one.props} == {22}


def test_fabric_rules_keep_their_names_when_a_range_goes():
    before, after = fabric("10.1.2.0/24", "10.5.100.7/32"), fabric("10.5.100.7/32")
    assert {one.name for one in after.requests} < {one.name for one in before.requests}


def access(**changes):
    return build(lambda: Access("access", plan(**changes), "arn:aws:kms:us-east-1:1:key/k"))


def test_access_has_a_role_for_the_head_node_only_where_there_is_one():
    without, with_head = access(orchestrator="none"), access(orchestrator="slurm")
    assert [one.props["name"] for one in without.of("aws:iam/role:Role")] == [NAMES.node_role]
    assert {one.props["name"] for one in with_head.of("aws:iam/role:Role")} == {NAMES.node_role, NAMES.head_role}
    policies = [one.props["policy"] for one in with_head.of("aws:iam/rolePolicy:RolePolicy")]
    assert any("arn:aws:kms:us-east-1:1:key/k" in policy for policy in policies), "the alerts' own key"


def bucket(stack=STACK, extra=(), **changes):
    return build(lambda: Bucket("data", plan(stack, **changes), NO_PARENT, "b", "data", versioned=True, extra=extra))


def test_bucket_refuses_plain_http_and_other_statements_stand_beside():
    extra = {"Sid": "More", "Effect": "Allow", "Principal": {"Service": "x"}, "Action": "s3:GetObject", "Resource": "*"}
    policy = json.loads(bucket(extra=[extra]).one("data-policy").props["policy"])
    assert [one["Effect"] for one in policy["Statement"]] == ["Deny", "Allow"]
    assert policy["Statement"][0]["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_bucket_of_an_emulator_has_no_policy_that_would_lock_it_out():
    assert bucket("local").of("aws:s3/bucketPolicy:BucketPolicy") == []


def test_bucket_can_be_emptied_only_where_data_may_go():
    kept, thrown = bucket().one("data-bucket"), bucket(keepData=False).one("data-bucket")
    assert (kept.props.get("forceDestroy"), kept.protect, kept.retain) == (False, True, True)
    assert (thrown.props.get("forceDestroy"), thrown.protect, thrown.retain) == (True, False, False)


def test_a_bucket_that_may_go_takes_its_companions_with_it():
    assert not any(one.protect or one.retain for one in bucket(keepData=False).custom)


def storage(**changes):
    return build(lambda: Storage("storage", plan(**changes)))


def test_storage_versions_what_would_hurt_to_lose():
    versioned = {one.props["bucket"] for one in storage().of("aws:s3/bucketVersioning:BucketVersioning")}
    assert versioned == {NAMES.data_bucket, NAMES.checkpoints_bucket, NAMES.results_bucket}


def test_storage_puts_the_express_bucket_into_the_zone_of_the_nodes():
    assert storage(s3Express=False).of("aws:s3/directoryBucket:DirectoryBucket") == []
    (express,) = storage(s3Express=True).of("aws:s3/directoryBucket:DirectoryBucket")
    zone = plan().settings.network.zones.home_id
    assert express.props["location"] == {"name": zone, "type": "AvailabilityZone"}


def lustre(efa, repository):
    return FsxSettings(size_gib=4800, throughput_mb_s_per_tib=1000, efa=efa, data_repository=repository)


def file_system(fsx, repository="s3://b"):
    def make():
        group = aws.cloudwatch.LogGroup("g", name="/aws/fsx/x", retention_in_days=1, tags=plan().tags)
        where = {"vpc_id": "vpc-1", "subnet_id": "subnet-1", "fabric_group_id": "sg-nodes"}
        FileSystem("lustre", plan(), FileSystemArgs(fsx=fsx, **where, log_group=group, data_repository=repository))

    run = engine.run(make)
    assert run.error is None
    return run


def test_lustre_ports_are_open_both_ways_between_servers_and_nodes():
    run = file_system(lustre(True, "data"))
    servers = run.one("lustre-group").id
    opened = {
        (
            one.props["securityGroupId"],
            one.props["referencedSecurityGroupId"],
            one.props["fromPort"],
            one.props["toPort"],
        )
        for one in run.custom
        if one.type_.endswith("IngressRule") and one.props["ipProtocol"] == "tcp"
    }
    pairs = [(servers, servers), (servers, "sg-nodes"), ("sg-nodes", servers)]
    assert opened == {(*pair, *ports) for pair in pairs for ports in ((988, 988), (1018, 1023))}


@pytest.mark.parametrize("efa_enabled", [True, False])
def test_lustre_is_made_after_its_ports_are_open(efa_enabled):
    """FSx refuses a group without the rules (user guide, "Creating an FSx for Lustre file system fails")."""
    run = file_system(lustre(efa_enabled, None))
    rules = {one.urn for one in run.custom if one.type_.endswith("gressRule")}
    assert rules and rules <= run.one("lustre-lustre").dependencies


def test_lustre_over_efa_needs_all_traffic_and_plain_lustre_does_not():
    def everything(run):
        return [one for one in run.custom if one.props.get("ipProtocol") == "-1"]

    assert len(everything(file_system(lustre(True, None)))) == 6
    assert everything(file_system(lustre(False, None))) == []


def test_lustre_without_a_repository_takes_backups():
    linked = file_system(lustre(False, "data")).one("lustre-lustre").props
    alone = file_system(lustre(False, None), repository=None)
    assert linked["automaticBackupRetentionDays"] == 0 and linked["skipFinalBackup"] is True
    assert alone.one("lustre-lustre").props["automaticBackupRetentionDays"] == 7
    assert alone.of("aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation") == []


def test_log_groups_forget():
    run = build(lambda: LogGroups("logs", plan(logRetentionDays=7)))
    assert [one.props["retentionInDays"] for one in run.custom] == [7, 7, 7]


def notifications(**changes):
    return build(lambda: Notifications("alerts", plan(**changes)))


def test_notifications_subscribe_everybody_once_by_address():
    run = notifications(alertEmails=["a@example.com", "b@example.com"])
    assert {one.name for one in run.of("aws:sns/topicSubscription:TopicSubscription")} == {
        "alerts-email-a@example.com",
        "alerts-email-b@example.com",
        "alerts-probe-told",
    }
    assert run.of("aws:secretsmanager/secret:Secret") == []


def test_notifications_let_only_aws_services_of_this_account_publish():
    run = notifications()
    policy = json.loads(run.one("alerts-alerts-policy").props["policy"])
    services = next(one for one in policy["Statement"] if one["Sid"] == "Services")
    assert services["Condition"] == {"StringEquals": {"aws:SourceAccount": stacks.ACCOUNT}}
    key = json.loads(run.one("alerts-key").props["policy"])
    assert set(services["Principal"]["Service"]) == set(key["Statement"][1]["Principal"]["Service"])


def test_audit_writes_only_its_own_trail_into_its_bucket():
    run = build(lambda: Audit("audit", plan()))
    policy = json.loads(run.one("audit-trail-policy").props["policy"])
    allowed = [one for one in policy["Statement"] if one["Effect"] == "Allow"]
    sources = {tuple(one["Condition"]["StringEquals"]["aws:SourceArn"]) for one in allowed}
    # Its own, and the name without a region that an earlier stack's trail keeps.
    assert [[arn.rpartition("/")[2] for arn in one] for one in sources] == [[NAMES.trail, f"{NAMES.cluster}-trail"]]
    (trail,) = run.of("aws:cloudtrail/trail:Trail")
    assert trail.props["enableLogFileValidation"] is True
    management, data = trail.props["eventSelectors"]
    assert (management["includeManagementEvents"], data["readWriteType"]) == (True, "WriteOnly")
    assert f"arn:aws:s3:::{NAMES.checkpoints_bucket}/" in data["dataResources"][0]["values"]
    assert run.one("audit-trail-policy").urn in trail.dependencies


def test_spending_tells_the_topic_before_the_money_is_gone():
    run = build(lambda: Spending("spending", plan(monthlyBudgetUsd=5000), "arn:topic"))
    notices = run.one(f"spending-budget-{NAMES.cluster}").props["notifications"]
    assert {(one["threshold"], one["notificationType"]) for one in notices} >= {(80, "FORECASTED"), (100, "ACTUAL")}
    assert all(one["subscriberSnsTopicArns"] == ["arn:topic"] for one in notices)
    monitor = run.one(f"spending-monitor-{NAMES.cluster}")
    looks_at = json.loads(monitor.props["monitorSpecification"])["Tags"]
    assert (looks_at["Key"], looks_at["Values"]) == ("flightline:cluster", [NAMES.cluster])
    assert "monitorSpecification" in monitor.ignored, "the provider would replace it in every update"
    expression = run.one(f"spending-anomalies-{NAMES.cluster}").props["thresholdExpression"]["dimension"]
    assert expression["values"] == ["250"]


OF_THE_ACCOUNT = (
    "aws:budgets/budget:Budget",
    "aws:cloudtrail/trail:Trail",
    "aws:cloudwatch/dashboard:Dashboard",
    "aws:costexplorer/anomalyMonitor:AnomalyMonitor",
    "aws:costexplorer/anomalySubscription:AnomalySubscription",
)


def test_what_an_account_has_once_by_its_name_carries_the_region():
    """Two stacks of one name in two regions: the second was refused its budget and trail, and took the dashboard over."""
    run = program.full()
    region = run.outputs["region"]
    for kind in OF_THE_ACCOUNT:
        (one,) = run.of(kind)
        name = str(one.props.get("name") or one.props["dashboardName"])
        assert name.endswith(f"-{region}"), name
        if "dashboard" not in kind:
            # A stack that was there keeps its own: a trail made anew has a gap, a budget or monitor forgets.
            earlier = one.name.removesuffix(f"-{run.outputs['cluster_name']}")
            assert "name" in one.ignored and earlier in [was.name for was in one.aliased]


def gpu_nodes(stack=STACK, **changes):
    subnets = [pulumi.Output.from_input("subnet-1")]
    found = plan(stack, bootPreflightMinutes=20, **changes)
    args = GpuNodesArgs(
        user_data="#cloud-config\n", profile_name="profile", security_group_ids=["sg-1"], subnet_ids=subnets
    )
    return build(lambda: GpuNodes("nodes", found, args))


@pytest.mark.parametrize(
    ("stack", "market", "preference"),
    [
        ("dev", None, None),
        ("spot", "spot", None),
        ("p5-reservation", None, "capacity-reservations-only"),
        ("p5en-capacity-block", "capacity-block", "capacity-reservations-only"),
    ],
)
def test_capacity_of_each_kind(stack, market, preference):
    props = gpu_nodes(stack).one("nodes-template").props
    assert props.get("instanceMarketOptions", {}).get("marketType") == market
    reservation = props.get("capacityReservationSpecification", {})
    assert reservation.get("capacityReservationPreference") == preference
    if preference:
        wanted = plan(stack).settings.nodes.capacity.reservation_id
        assert reservation["capacityReservationTarget"] == {"capacityReservationId": wanted}


@pytest.mark.parametrize("instance_type", ["p5.48xlarge", "p6-b300.48xlarge", "p4d.24xlarge", "g6.xlarge"])
def test_interfaces_are_the_planned_ones_and_carry_the_group(instance_type):
    chosen = plan("dev", gpuInstanceType=instance_type).settings.nodes
    interfaces = gpu_nodes("dev", gpuInstanceType=instance_type).one("nodes-template").props["networkInterfaces"]
    planned = efa.interfaces(instance_type, chosen.efa)
    assert [(one["networkCardIndex"], one["deviceIndex"], one["interfaceType"]) for one in interfaces] == [
        (one.card, one.device, one.kind) for one in planned
    ]
    assert all(one["securityGroups"] == ["sg-1"] for one in interfaces)
    assert interfaces[0]["associatePublicIpAddress"] == "false"


def test_placement_group_made_given_or_none():
    made = gpu_nodes("local", placementGroup="cluster")
    assert made.one("nodes-template").props["placement"] == {"groupName": stacks.planned_names("local").placement_group}
    assert made.one("nodes-placement").props["strategy"] == "cluster"
    given = gpu_nodes("local", placementGroup="mine")
    assert given.one("nodes-template").props["placement"] == {"groupName": "mine"}
    none = gpu_nodes("local")
    assert "placement" not in none.one("nodes-template").props
    for run in (given, none):
        assert run.of("aws:ec2/placementGroup:PlacementGroup") == []


def test_an_instance_that_says_nothing_in_time_is_abandoned():
    run = gpu_nodes()
    hook = run.one("nodes-hook").props
    assert (hook["defaultResult"], hook["heartbeatTimeout"]) == ("ABANDON", 3600), "30 + 20 minutes, and 10"
    assert run.one("nodes-group").props["suspendedProcesses"] == ["AZRebalance"]
    # `pulumi up` does not wait for capacity that may take hours.
    assert run.one("nodes-group").props["waitForCapacityTimeout"] == "0"


def head_node(**changes):
    where = ("vpc-1", "subnet-1", "sg-nodes", "p")
    return build(lambda: HeadNode("head", plan(orchestrator="slurm", **changes), *where))


def test_head_node_is_private_with_session_manager_and_reachable_from_named_ranges_with_ssh():
    closed, opened = head_node(), head_node(**SSH, sshCidrs=["192.0.2.0/24"])
    assert closed.one("head-instance").props["associatePublicIpAddress"] is False
    assert kinds(closed) == ["Instance"]
    assert opened.one("head-instance").props["associatePublicIpAddress"] is True
    (rule,) = opened.of("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule")
    assert rule.props["cidrIpv4"] == "192.0.2.0/24"
    assert "sg-nodes" in opened.one("head-instance").props["vpcSecurityGroupIds"]
