"""What the components describe is created on moto's server from the recorded arguments, and read back.

Read back is what the recorded arguments alone do not show (routes, instances, tables, the package's bytes); what one
argument says is tested in test_components.py and held by the policies. Emulated: moto answers as AWS would, and checks
less. It keeps the lifecycle hook without acting on it, and has no placement groups, data repository associations or
directory buckets: requests for those are held against botocore's service models.
"""

import base64
import hashlib

import boto3
import pytest
from botocore.validate import ParamValidator

from flightline import contract
from flightline.cloud import items
from infra.planning.tags import instance_tags
from tests.emulated import Cloud
from tests.infra import emulated, program, stacks
from tests.infra.test_components import gpu_nodes

REGION = "us-east-1"


@pytest.fixture(scope="module")
def run():
    found = program.run("local", changes={"slackWebhook": program.WEBHOOK, "alertEmails": ["ops@example.com"]})
    assert found.error is None
    return found


@pytest.fixture(scope="module")
def world(run):
    cloud = Cloud()
    yield emulated.create(run, cloud.url, REGION)
    cloud.close()


@pytest.fixture(scope="module")
def names():
    return stacks.planned_names("local")


def real(world, run, output):
    return world.real(run.outputs[output])


def test_the_network_is_as_planned(world, run):
    ec2, vpc_id = world.client("ec2"), real(world, run, "vpc_id")
    mine = [{"Name": "vpc-id", "Values": [vpc_id]}]
    subnets = {net["SubnetId"]: net for net in ec2.describe_subnets(Filters=mine)["Subnets"]}
    assert sorted(net["CidrBlock"] for net in subnets.values()) == [
        "10.0.1.0/24",
        "10.0.101.0/24",
        "10.0.102.0/24",
        "10.0.2.0/24",
    ]
    assert not any(net["MapPublicIpOnLaunch"] for net in subnets.values())
    tables = ec2.describe_route_tables(Filters=mine)["RouteTables"]
    ways = {
        subnets[link["SubnetId"]]["CidrBlock"]: route
        for table in tables
        for link in table["Associations"]
        if link.get("SubnetId")
        for route in table["Routes"]
        if route.get("DestinationCidrBlock") == "0.0.0.0/0"
    }
    assert {cidr for cidr, route in ways.items() if route.get("GatewayId", "").startswith("igw-")} == {
        "10.0.1.0/24",
        "10.0.2.0/24",
    }
    assert {cidr for cidr, route in ways.items() if route.get("NatGatewayId")} == {"10.0.101.0/24", "10.0.102.0/24"}
    services = [one["ServiceName"].rsplit(".", 1)[1] for one in ec2.describe_vpc_endpoints()["VpcEndpoints"]]
    assert sorted(services) == ["dynamodb", "s3"]


def test_the_group_launches_tagged_nodes_into_the_private_subnet(world, run, names):
    (group,) = world.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    settings = stacks.settings("local")
    assert (group["MinSize"], group["DesiredCapacity"], group["MaxSize"]) == (
        settings.nodes.minimum,
        settings.nodes.count,
        settings.nodes.maximum,
    )
    assert [one["ProcessName"] for one in group["SuspendedProcesses"]] == ["AZRebalance"]
    (private, _) = real(world, run, "private_subnet_ids")
    assert group["VPCZoneIdentifier"] == private
    wanted = instance_tags(settings, "local", contract.ROLE_GPU)
    nodes = [one for part in world.client("ec2").describe_instances()["Reservations"] for one in part["Instances"]]
    assert len(nodes) == settings.nodes.count == 2
    for node in nodes:
        tags = {tag["Key"]: tag["Value"] for tag in node["Tags"]}
        assert {key: tags.get(key) for key in wanted} == wanted
        assert node["SubnetId"] == private and not node.get("PublicIpAddress")


def test_the_hook_is_there_before_the_first_instance(run):
    # moto takes hooks only after the group; the provider sends these with the group itself.
    group, hook = run.one("nodes-group").props, run.one("nodes-hook").props
    (initial,) = group["initialLifecycleHooks"]
    assert {key: hook[key] for key in initial} == initial


def test_the_results_table_is_the_one_that_the_code_writes(world, names):
    table = world.client("dynamodb").describe_table(TableName=names.results_table)["Table"]
    wanted = items.table_definition(names.results_table)
    assert table["KeySchema"] == wanted["KeySchema"]

    def by_name(one):
        return one["AttributeName"]

    assert sorted(table["AttributeDefinitions"], key=by_name) == sorted(wanted["AttributeDefinitions"], key=by_name)
    indexes = {one["IndexName"]: (one["KeySchema"], one["Projection"]) for one in table["GlobalSecondaryIndexes"]}
    assert indexes == {
        one["IndexName"]: (one["KeySchema"], one["Projection"]) for one in wanted["GlobalSecondaryIndexes"]
    }


@pytest.mark.parametrize("table", ["results_table", "training_table"])
def test_tables_forget_recover_and_encrypt(world, names, table):
    dynamodb, name = world.client("dynamodb"), getattr(names, table)
    ttl = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    assert (ttl["TimeToLiveStatus"], ttl["AttributeName"]) == ("ENABLED", items.TTL)
    backups = dynamodb.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
    described = dynamodb.describe_table(TableName=name)["Table"]
    assert described["SSEDescription"]["Status"] == "ENABLED"
    assert described["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"


def test_training_jobs_are_found_by_data_set_and_model(world, names):
    dynamodb = world.client("dynamodb")
    job = {"pk": "JOB#j1", "sk": "2026-11-21T10:00:00+00:00#r1", "dataset": "d", "model": "m", "day": "2026-11-21"}
    job["at"] = job["sk"]
    dynamodb.put_item(TableName=names.training_table, Item=items.marshal(job))
    for index, key, value in (
        ("by_dataset", "dataset", "d"),
        ("by_model", "model", "m"),
        ("by_day", "day", "2026-11-21"),
    ):
        found = dynamodb.query(
            TableName=names.training_table,
            IndexName=index,
            KeyConditionExpression="#key = :value AND begins_with(#at, :day)",
            ExpressionAttributeNames={"#key": key, "#at": "at"},
            ExpressionAttributeValues={":value": {"S": value}, ":day": {"S": "2026-11"}},
        )
        assert [items.unmarshal(one)["pk"] for one in found["Items"]] == ["JOB#j1"], index


def test_the_node_package_lies_where_the_user_data_says(world, run, names):
    key = run.one("node-package").props["key"]
    body = world.client("s3").get_object(Bucket=names.results_bucket, Key=key)["Body"].read()
    assert key == names.package_key(hashlib.sha256(body).hexdigest())
    template = run.one("nodes-template").props["userData"]
    assert f"s3://{names.results_bucket}/{key}" in base64.b64decode(template).decode()


@pytest.fixture(scope="module")
def models():
    return {
        name: boto3.client(name, region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x")
        for name in SERVICES
    }


SERVICES = ("ec2", "fsx", "s3", "autoscaling")


def report(models, service, operation, params):
    shape = models[service].meta.service_model.operation_model(operation).input_shape
    return ParamValidator().validate(params, shape).generate_report()


TEMPLATES = [
    ("dev", {"gpuInstanceType": "p5.48xlarge"}, 33, None),
    ("dev", {"gpuInstanceType": "p6-b300.48xlarge"}, 17, None),
    ("dev", {"gpuInstanceType": "g5.xlarge"}, 1, None),
    ("dev", {"gpuInstanceType": "p6-b200.48xlarge"}, 9, None),
    ("dev", {"gpuInstanceType": "trn2.48xlarge"}, 17, None),
    ("spot", {}, 5, "spot"),
    ("p5en-capacity-block", {}, 17, "capacity-block"),
    ("p5-reservation", {}, 33, None),
]


@pytest.mark.parametrize(("stack", "changes", "interfaces", "market"), TEMPLATES)
def test_launch_templates_are_what_the_ec2_api_takes(models, stack, changes, interfaces, market):
    data = emulated.template_data(models["ec2"], gpu_nodes(stack, **changes).one("nodes-template").props)
    assert report(models, "ec2", "CreateLaunchTemplate", {"LaunchTemplateName": "x", "LaunchTemplateData": data}) == ""
    assert len(data["NetworkInterfaces"]) == interfaces
    assert data.get("InstanceMarketOptions", {}).get("MarketType") == market
    assert "SecurityGroupIds" not in data and "SubnetId" not in data


def test_an_argument_that_the_api_lacks_is_noticed(models):
    with pytest.raises(AssertionError, match="has no Bogus"):
        emulated.template_data(models["ec2"], {"bogus": 1})
    with pytest.raises(AssertionError, match="not 'capacity-blocks'"):
        emulated.template_data(models["ec2"], {"instanceMarketOptions": {"marketType": "capacity-blocks"}})


def test_the_file_system_is_what_the_fsx_api_takes(models):
    props = {key: value for key, value in program.full().one("lustre-lustre").props.items() if key != "skipFinalBackup"}
    shape = models["fsx"].meta.service_model.operation_model("CreateFileSystem").input_shape
    top = {key: value for key, value in props.items() if key[0].upper() + key[1:] in shape.members}
    lustre = {key: value for key, value in props.items() if key not in top}
    chosen = {**top, "subnetIds": [props["subnetIds"]], "lustreConfiguration": lustre}
    params = {"FileSystemType": "LUSTRE", **emulated.by_model(shape, chosen)}
    assert report(models, "fsx", "CreateFileSystem", params) == ""
    assert params["LustreConfiguration"]["EfaEnabled"] is True
    assert params["LustreConfiguration"]["MetadataConfiguration"] == {"Mode": "AUTOMATIC"}


def test_the_data_repository_is_what_the_fsx_api_takes(models):
    shape = models["fsx"].meta.service_model.operation_model("CreateDataRepositoryAssociation").input_shape
    params = emulated.by_model(shape, program.full().one("lustre-data").props)
    assert report(models, "fsx", "CreateDataRepositoryAssociation", params) == ""


def test_the_placement_group_and_the_directory_bucket_are_what_the_apis_take(models):
    run = program.run("local", changes={"s3Express": True, "placementGroup": "cluster"})
    (group,) = run.of("aws:ec2/placementGroup:PlacementGroup")
    shape = models["ec2"].meta.service_model.operation_model("CreatePlacementGroup").input_shape
    params = emulated.by_model(shape, {"groupName": group.props["name"], "strategy": group.props["strategy"]})
    assert report(models, "ec2", "CreatePlacementGroup", params) == ""
    (bucket,) = run.of("aws:s3/directoryBucket:DirectoryBucket")
    shape = models["s3"].meta.service_model.operation_model("CreateBucket").input_shape
    chosen = {
        "location": bucket.props["location"],
        "bucket": {"type": bucket.props["type"], "dataRedundancy": bucket.props["dataRedundancy"]},
    }
    params = {
        "Bucket": bucket.props["bucket"],
        "CreateBucketConfiguration": emulated.by_model(shape.members["CreateBucketConfiguration"], chosen),
    }
    assert report(models, "s3", "CreateBucket", params) == ""
    zone = stacks.settings("local").network.zones.home_id
    assert bucket.props["bucket"].endswith(f"--{zone}--x-s3")
