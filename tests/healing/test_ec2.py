"""EC2's steps on moto's server, every request validated by botocore against EC2's own model.

moto has no capacity reservations and no ReportInstanceStatus: those requests are validated, and answered here.
"""

from dataclasses import replace

import boto3
import pytest

from flightline.cloud.clients import Clients
from flightline.healing.journal import incident as incidents
from flightline.healing.journal.incident import Attempt
from flightline.healing.steps.ec2 import TAG, Ec2, _outside
from flightline.healing.steps.ports import EdgeError
from tests.emulated import REGION, lead_to
from tests.unit.healing.made import T0, incident, trouble

GROUP = "gpu"


@pytest.fixture
def cloud(server, monkeypatch):
    return lead_to(server, monkeypatch)


@pytest.fixture
def ec2(cloud):
    client = boto3.client("ec2", region_name=REGION)
    image = client.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    client.create_launch_template(
        LaunchTemplateName="gpu", LaunchTemplateData={"ImageId": image, "InstanceType": "p5.48xlarge"}
    )
    boto3.client("autoscaling", region_name=REGION).create_auto_scaling_group(
        AutoScalingGroupName=GROUP,
        MinSize=3,
        MaxSize=3,
        DesiredCapacity=3,
        LaunchTemplate={"LaunchTemplateName": "gpu"},
        AvailabilityZones=[f"{REGION}a"],
    )
    return Ec2(Clients(REGION))


def group(ec2):
    return ec2._asg("describe_auto_scaling_groups", GROUP, AutoScalingGroupNames=[GROUP])["AutoScalingGroups"][0]


def members(ec2):
    return sorted(one["InstanceId"] for one in group(ec2)["Instances"])


def sick(ec2):
    return replace(incident("n1", trouble("REPLACE")), instance_id=members(ec2)[0])


def state(ec2, instance_id):
    found = ec2._ec2("describe_instances", instance_id, InstanceIds=[instance_id])["Reservations"][0]["Instances"]
    return found[0]["State"]["Name"]


class Reserved:
    """What moto lacks: answers, and what was asked after botocore had validated it."""

    def __init__(self, ec2, free=1):
        self.asked = []
        events = ec2.clients.get("ec2").meta.events
        events.register("before-parameter-build.ec2.*", self.keep)
        events.register("before-call.ec2.ReportInstanceStatus", lambda **_: self.answer({}))
        free_now = {"CapacityReservations": [{"AvailableInstanceCount": free}]}
        events.register("before-call.ec2.DescribeCapacityReservations", lambda **_: self.answer(free_now))
        events.register("after-call.ec2.DescribeInstances", self.reserve)

    def keep(self, params, model, **_):
        self.asked.append((model.name, params))

    @staticmethod
    def answer(parsed):
        class Http:
            status_code = 200

        return Http(), {**parsed, "ResponseMetadata": {"HTTPStatusCode": 200}}

    @staticmethod
    def reserve(parsed, **_):
        for held in parsed["Reservations"]:
            for one in held["Instances"]:
                one["CapacityReservationId"] = "cr-0123456789abcdef0"

    def names(self):
        return [name for name, _ in self.asked]


def test_on_demand_the_group_replaces_it_and_keeps_its_size(ec2):
    one, before_all = sick(ec2), members(ec2)
    before = ec2.before(one)
    assert (before["kept"], before["size"], sorted(before["members"])) == (False, 3, before_all)
    assert ec2.successor(before) == ""
    outcome, swap = ec2.replace(one, before)
    assert outcome.what == incidents.DONE
    assert group(ec2)["DesiredCapacity"] == 3
    assert state(ec2, one.instance_id) == "terminated"
    new = ec2.successor(swap)
    assert new
    assert new not in before_all
    assert ec2.successor(swap, {new}) == ""
    assert ec2.settle(one, Attempt(1, "REPLACE", T0, 1, before=before))[0].what == incidents.DONE


def test_in_reserved_capacity_the_bad_one_is_kept_then_reported_and_given_back(ec2):
    one = replace(sick(ec2), troubles=(trouble("REPLACE"),))
    asked = Reserved(ec2)
    before = ec2.before(one)
    assert before["kept"]
    outcome, swap = ec2.replace(one, before)
    assert outcome.what == incidents.DONE
    assert state(ec2, one.instance_id) == "running"
    assert group(ec2)["DesiredCapacity"] == 3
    assert one.instance_id not in members(ec2)
    tags = ec2.clients.get("ec2").describe_tags(Filters=[{"Name": "resource-id", "Values": [one.instance_id]}])["Tags"]
    assert {tag["Key"]: tag["Value"] for tag in tags}[TAG] == one.id
    new = ec2.successor(swap)
    assert new
    assert "TerminateInstances" not in asked.names()
    assert ec2.release(swap, one).what == incidents.DONE
    order = [name for name in asked.names() if name in ("ReportInstanceStatus", "TerminateInstances")]
    assert order == ["ReportInstanceStatus", "TerminateInstances"]
    (report,) = [params for name, params in asked.asked if name == "ReportInstanceStatus"]
    assert report["Instances"] == [one.instance_id]
    assert "1650000000001" in report["Description"]
    assert state(ec2, one.instance_id) == "terminated"
    assert members(ec2)
    assert new in members(ec2)


def test_released_twice_reports_once(ec2):
    one = sick(ec2)
    asked = Reserved(ec2)
    swap = ec2.replace(one, ec2.before(one))[1]
    ec2.release(swap, one)
    ec2.release(swap, one)
    assert asked.names().count("ReportInstanceStatus") == 1


def test_a_full_reservation_gives_nothing_back_unproven(ec2):
    Reserved(ec2, free=0)
    with pytest.raises(EdgeError, match="no free instance beside the bad one"):
        ec2.before(sick(ec2))
    assert len(members(ec2)) == 3


def test_what_was_cut_off_is_read_from_ec2(ec2):
    one = sick(ec2)
    Reserved(ec2)
    before = ec2.before(one)
    attempt = Attempt(1, "REPLACE", T0, 1, before=before)
    assert ec2.settle(one, attempt)[0].what == incidents.NOT_DONE
    swap = ec2.replace(one, before)[1]
    assert ec2.settle(one, attempt)[0].what == incidents.DONE
    given = Attempt(2, incidents.RELEASE, T0, 1, before=swap)
    assert ec2.settle(one, given)[0].what == incidents.NOT_DONE
    ec2.release(swap, one)
    assert ec2.settle(one, given)[0].what == incidents.DONE


def test_a_group_that_launches_nothing_replaces_nothing(ec2):
    ec2.clients.get("autoscaling").suspend_processes(AutoScalingGroupName=GROUP, ScalingProcesses=["Launch"])
    with pytest.raises(EdgeError, match="Launch is suspended"):
        ec2.before(sick(ec2))


def test_an_instance_of_no_group_is_a_persons(ec2):
    image = ec2.clients.get("ec2").describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    alone = ec2.clients.get("ec2").run_instances(ImageId=image, MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"]
    with pytest.raises(EdgeError, match="in no Auto Scaling group"):
        ec2.before(replace(incident(), instance_id=alone))


@pytest.mark.parametrize("instance_id", ["", "i-0123456789abcdef0"])
def test_an_instance_that_is_not_there(ec2, instance_id):
    with pytest.raises(EdgeError):
        ec2.before(replace(incident(), instance_id=instance_id))


def test_a_reboot_is_only_begun_until_the_node_shows_it(ec2):
    assert ec2.reboot(sick(ec2)).what == incidents.NOT_YET


def test_every_call_is_one_of_botocores():
    """The requests above are validated as they are sent; this holds the list of them together."""
    from botocore.session import get_session

    session = get_session()
    made = {
        "ec2": ["DescribeInstances", "CreateTags", "RebootInstances", "ReportInstanceStatus", "TerminateInstances"],
        "autoscaling": ["DetachInstances", "TerminateInstanceInAutoScalingGroup", "DescribeAutoScalingInstances"],
    }
    for service, operations in made.items():
        assert set(operations) <= set(session.get_service_model(service).operation_names)
    codes = session.get_service_model("ec2").operation_model("ReportInstanceStatus").input_shape.members["ReasonCodes"]
    assert "other" in codes.member.enum


@pytest.fixture
def eks(ec2):
    """A managed node group of EKS, whose instances carry its tags. moto knows no node auto repair: it is answered here."""
    client = ec2.clients.get("eks")
    network = {"subnetIds": ["subnet-1", "subnet-2"]}
    role = "arn:aws:iam::123456789012:role/x"
    client.create_cluster(name="c", roleArn=role, resourcesVpcConfig=network)
    client.create_nodegroup(clusterName="c", nodegroupName="g", subnets=["subnet-1"], nodeRole=role)
    tags = [{"Key": "eks:cluster-name", "Value": "c"}, {"Key": "eks:nodegroup-name", "Value": "g"}]
    ec2.clients.get("ec2").create_tags(Resources=members(ec2), Tags=tags)
    yield client
    client.delete_nodegroup(clusterName="c", nodegroupName="g")
    client.delete_cluster(name="c")


def said_of_group(eks, **changes):
    eks.meta.events.register(
        "after-call.eks.DescribeNodegroup", lambda parsed, **_: parsed["nodegroup"].update(changes)
    )


def test_a_node_of_a_managed_node_group_is_replaced_through_the_group_of_it(ec2, eks):
    one = sick(ec2)
    outcome, swap = ec2.replace(one, ec2.before(one))
    assert outcome.what == incidents.DONE and group(ec2)["DesiredCapacity"] == 3
    assert state(ec2, one.instance_id) == "terminated" and ec2.successor(swap)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"nodeRepairConfig": {"enabled": True}}, "EKS repairs the nodes of g itself"),
        ({"status": "UPDATING"}, "the node group g is UPDATING"),
    ],
)
def test_what_eks_repairs_or_changes_is_left_to_it(ec2, eks, changes, said):
    said_of_group(eks, **changes)
    one = sick(ec2)
    for step in (ec2.before, ec2.reboot):
        with pytest.raises(EdgeError, match=said):
            step(one)
    assert state(ec2, one.instance_id) == "running"


def test_karpenters_instance_is_left_to_it(ec2):
    one = sick(ec2)
    ec2.clients.get("ec2").create_tags(
        Resources=[one.instance_id], Tags=[{"Key": "karpenter.sh/nodepool", "Value": "gpu"}]
    )
    for step in (ec2.before, ec2.reboot):
        with pytest.raises(EdgeError, match=r"Karpenter's .node pool gpu., which replaces it itself"):
            step(one)


def test_what_ec2_says_of_hosts_that_fell_silent(ec2):
    client = boto3.client("ec2", region_name=REGION)
    names = sorted(
        one["InstanceId"] for held in client.describe_instances()["Reservations"] for one in held["Instances"]
    )
    client.stop_instances(InstanceIds=names[:1])
    made = Ec2(Clients(REGION))
    seen = made.seen([*names, "i-0123456789abcdef0"])
    assert seen[names[0]].dead
    assert "EC2 says stop" in seen[names[0]].said
    assert not seen[names[1]].dead
    assert seen["i-0123456789abcdef0"].said == "EC2 knows it no more"
    assert made.seen([]) == {}


@pytest.mark.parametrize(
    ("status", "dead", "said"),
    [
        ({"InstanceState": {"Name": "running"}, "SystemStatus": {"Status": "ok"}}, False, "running, checks passed"),
        ({"InstanceState": {"Name": "running"}, "SystemStatus": {"Status": "impaired"}}, True, "system check impaired"),
        ({"InstanceState": {"Name": "running"}, "Events": [{"Code": "instance-retirement"}]}, True, "instance-retire"),
        (
            {
                "InstanceState": {"Name": "running"},
                "Events": [{"Code": "instance-stop", "Description": "[Completed] Done"}],
            },
            False,
            "checks passed",
        ),
        ({"InstanceState": {"Name": "shutting-down"}}, True, "shutting-down"),
    ],
)
def test_a_status_is_read_after_ec2s_own_words(status, dead, said):
    """Written by hand after the EC2 API reference, DescribeInstanceStatus."""
    view = _outside(status)
    assert view.dead is dead
    assert said in view.said
