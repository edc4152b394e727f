"""What still costs after a stack is gone: against moto's server; what it lacks, against botocore's model by stubs."""

import json

import boto3
import pytest
from botocore.stub import Stubber
from click.testing import CliRunner

from flightline.cloud.clients import Clients
from flightline.contract import TAG_CLUSTER
from flightline.money import leftovers as finder
from flightline_node.model import SettingsError
from infra import leftovers
from infra.planning.names import Place
from tests.emulated import ACCOUNT, REGION, lead_to

CLUSTER = "train"
PLACE = Place("aws", REGION, ACCOUNT)


MOTO_LACKS = ("capacity reservation", "file system backup", "directory bucket")


@pytest.fixture
def aws(server, monkeypatch):
    monkeypatch.setattr(finder, "KINDS", tuple(kind for kind in finder.KINDS if kind.name not in MOTO_LACKS))
    return lead_to(server, monkeypatch)


def tags(kind, cluster=CLUSTER):
    return [{"ResourceType": kind, "Tags": [{"Key": TAG_CLUSTER, "Value": cluster}]}]


def volume(aws, cluster=CLUSTER):
    made = aws.client("ec2").create_volume(
        AvailabilityZone=f"{REGION}a", Size=8, TagSpecifications=tags("volume", cluster)
    )
    return made["VolumeId"]


def instance(aws):
    ec2 = aws.client("ec2")
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    made = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, TagSpecifications=tags("instance"))
    return made["Instances"][0]["InstanceId"]


def listed(*arguments):
    done = CliRunner().invoke(leftovers.command, [CLUSTER, "--json", *arguments])
    return done, {thing["id"]: thing for thing in json.loads(done.stdout)["things"]}


def test_nothing_is_left(aws):
    done = CliRunner().invoke(leftovers.command, [CLUSTER])
    assert (done.exit_code, done.output) == (0, "nothing of train is left\n")


def test_what_is_left_is_listed_with_what_to_do(aws):
    lost, ours = volume(aws), "/flightline/train/results"
    aws.client("logs").create_log_group(logGroupName=ours)
    aws.bucket(f"train-data-{ACCOUNT}-{REGION}")
    done, things = listed()
    assert done.exit_code == 1
    assert things[lost]["removable"]
    assert things[ours]["removable"]
    assert things[f"train-data-{ACCOUNT}-{REGION}"]["why_not"].startswith("data: set keepData: false")


def test_another_cluster_s_are_not_listed(aws):
    volume(aws, "train-2")
    for name in ("/flightline/train-2/results", "/aws/lambda/train-2-storage", "/aws/lambda/train-storage-of-others"):
        aws.client("logs").create_log_group(logGroupName=name)
    for name in (f"train-2-data-{ACCOUNT}-{REGION}", "train-data-of-somebody"):
        aws.bucket(name)
    assert listed()[1] == {}


def test_removal_deletes_what_nothing_needs_and_keeps_data(aws):
    lost = volume(aws)
    aws.client("logs").create_log_group(logGroupName="/aws/lambda/train-storage")
    aws.bucket(f"train-data-{ACCOUNT}-{REGION}")
    done = CliRunner().invoke(leftovers.command, [CLUSTER, "--remove"])
    assert done.exit_code == 1
    assert f"removed volume {lost}" in done.output
    assert list(listed()[1]) == [f"train-data-{ACCOUNT}-{REGION}"]


def test_nothing_is_removed_beside_a_cluster_that_runs(aws):
    lost, node = volume(aws), instance(aws)
    done = CliRunner().invoke(leftovers.command, [CLUSTER, "--remove"])
    assert done.exit_code != 0
    assert f"nothing removed: saw 1 instance, NAT gateway or endpoint ({node})" in done.output
    assert lost in listed()[1]


def test_nothing_is_removed_beside_a_network_that_still_stands(aws):
    """A stack that is half up, or has no nodes and no NAT, was taken for one that is down."""
    ec2, lost = aws.client("ec2"), volume(aws)
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    ec2.create_vpc_endpoint(VpcId=vpc, ServiceName=f"com.amazonaws.{REGION}.s3", TagSpecifications=tags("vpc-endpoint"))
    done = CliRunner().invoke(leftovers.command, [CLUSTER, "--remove"])
    assert (done.exit_code, "nothing removed" in done.output) == (1, True)
    assert lost in listed()[1]


@pytest.mark.parametrize("answer", [(403, "AccessDenied"), (400, "InvalidParameterValue")])
def test_nothing_is_removed_where_nobody_says_whether_the_cluster_runs(aws, answer):
    """DescribeInstances denied was no instances: what a cluster that runs had lying there was deleted."""
    lost = volume(aws)
    aws.before = lambda action: answer if action == "DescribeInstances" else None
    done = CliRunner().invoke(leftovers.command, [CLUSTER, "--remove"])
    assert done.exit_code != 0
    assert "nothing removed: saw no answer about instance, wanted a cluster that is down; do: mend" in done.output
    aws.before = None
    assert lost in listed()[1]


def test_an_answer_that_lacks_its_list_is_not_nothing_left():
    class Client:
        meta = None

        def can_paginate(self, _):
            return False

        def __getattr__(self, name):
            return lambda **_: {}

    class Asked(Clients):
        def get(self, _):
            return Client()

    found = finder.find({REGION: finder.Owner(CLUSTER, TAG_CLUSTER, CLUSTER)}, lambda _: Asked())
    assert len(found.troubles) == len(finder.KINDS)
    assert "saw an answer that cannot be read" in found.troubles[0]


def test_a_region_that_nobody_knows_is_named():
    with pytest.raises(SettingsError, match=r"saw 'us-est-1', wanted an AWS region \(did you mean us-.*; do: correct"):
        CliRunner().invoke(leftovers.command, [CLUSTER, "--region", "us-est-1"], catch_exceptions=False)


def test_a_terminated_instance_costs_nothing(aws):
    aws.client("ec2").terminate_instances(InstanceIds=[instance(aws)])
    assert "instance" not in {thing["kind"] for thing in listed()[1].values()}


def test_what_is_denied_is_said_and_is_not_nothing_left(aws):
    aws.before = lambda action: (403, "AccessDeniedException") if action == "DescribeLogGroups" else None
    done = CliRunner().invoke(leftovers.command, [CLUSTER])
    assert done.exit_code == 2
    assert f"not asked: {REGION}: logs:describe_log_groups: AWS denies it" in done.output
    assert "nothing of train is left" not in done.output


def test_what_cannot_be_removed_is_said(aws):
    aws.client("logs").create_log_group(logGroupName="/aws/fsx/train")
    aws.before = lambda action: (403, "AccessDeniedException") if action == "DeleteLogGroup" else None
    done = CliRunner().invoke(leftovers.command, [CLUSTER, "--remove"])
    assert done.exit_code == 1
    assert "not removed: /aws/fsx/train: AWS denies it" in done.output


@pytest.mark.parametrize(
    ("name", "owned"),
    [
        (f"train-{ACCOUNT}--use1-az4--x-s3", True),
        (f"train-2-{ACCOUNT}--use1-az4--x-s3", False),
        ("train-results", True),
        ("train-results-2", False),
        ("/aws/fsx/train", True),
        ("/aws/fsx/train-2", False),
    ],
)
def test_whole_names_are_the_cluster_s(name, owned):
    assert leftovers.owner(CLUSTER, PLACE).has(name, {}) is owned


OURS = [{"Key": TAG_CLUSTER, "Value": CLUSTER}]
STUBBED: dict[str, list[dict]] = {
    "capacity reservation": [
        {"CapacityReservationId": "cr-1", "State": "active"},
        {"CapacityReservationId": "cr-2", "State": "expired"},
    ],
    "file system backup": [
        {"BackupId": "backup-0123456789", "Lifecycle": "AVAILABLE", "Tags": OURS},
        {"BackupId": "backup-abcdef0123", "Lifecycle": "AVAILABLE"},
    ],
    "directory bucket": [
        {"Name": f"train-{ACCOUNT}--euw1-az1--x-s3"},
        {"Name": f"train-2-{ACCOUNT}--euw1-az1--x-s3"},
    ],
}


@pytest.mark.parametrize("name", MOTO_LACKS)
def test_kinds_that_moto_lacks_are_found(name, monkeypatch):
    (kind,) = (kind for kind in finder.KINDS if kind.name == name)
    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
    client = boto3.client(kind.service, region_name=REGION, **keys)
    entries = [
        {**entry, "Type": "AUTOMATIC", "CreationTime": 0, "FileSystem": {}} if kind.service == "fsx" else entry
        for entry in STUBBED[name]
    ]
    monkeypatch.setattr(finder, "KINDS", (kind,))
    with Stubber(client) as stub:
        stub.add_response(kind.operation, {kind.listing: entries})
        clients = Clients(REGION, {kind.service: client})
        found = finder.find({REGION: leftovers.owner(CLUSTER, PLACE)}, lambda region: clients)
    first = STUBBED[name][0]
    assert [thing.id for thing in found.things] == [first[kind.id]]
    assert not found.things[0].removable


def test_every_question_and_deletion_is_one_that_aws_has():
    for kind in finder.KINDS:
        client = boto3.client(kind.service, region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x")
        model = client.meta.service_model.operation_model(client.meta.method_to_api_mapping[kind.operation])
        assert kind.listing in model.output_shape.members
        assert not kind.tagged or kind.filters in model.input_shape.members


def test_a_tag_outweighs_a_name():
    other = {"Tags": [{"Key": TAG_CLUSTER, "Value": "train-2"}]}
    assert not leftovers.owner(CLUSTER, PLACE).has("train-results", other)
