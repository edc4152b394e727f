"""What an operator's account looks like before `make up`, and what `flightline ready` has to say of it.

The table is the judge: an account as it may be, the exit status, and the ids that are not ready or not known. The account is
a stand-in, its answers written by hand after botocore's models, which check each question and answer; nothing asks AWS.
"""

import base64
import json
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from functools import cache
from types import SimpleNamespace

import boto3
import pytest
from botocore.validate import validate_parameters
from click.testing import CliRunner

from flightline.cloud.clients import Clients
from infra import describe, ready
from infra.planning import instance_types, quotas, readiness
from tests.infra.stacks import ROOT, STACKS, settings

NOW = datetime(2026, 11, 26, 9, tzinfo=timezone.utc)
CR, OTHER = "cr-0123456789abcdef0", "cr-0123456789abcdef1"
AMI = "ami-0123456789abcdef0"
SUPPORTED = (
    "Supported EC2 instances: G4dn, G5, G6, P4d, P5, P5e, P5en, P6-B200. Release notes: https://docs.aws.amazon.com/"
)
P_DEMAND, P5_SPOT, STANDARD, G_DEMAND = "L-417A185B", "L-C4BD4855", "L-1216C47A", "L-DB2E81BA"
VCPUS = {"g6.xlarge": 4, "m7i.xlarge": 4}


def reservation(**rest):
    given = {"CapacityReservationId": CR, "InstanceType": "p5.48xlarge", "InstancePlatform": "Linux/UNIX"}
    given |= {"AvailabilityZone": "us-east-1a", "AvailabilityZoneId": "use1-az1", "Tenancy": "default"}
    sizes = {"TotalInstanceCount": 8, "AvailableInstanceCount": 8}
    return {**given, **sizes, "State": "active", "ReservationType": "default", **rest}


def instance(kind, tags=(), **rest):
    cores = {"CoreCount": VCPUS.get(kind, 192) // 2, "ThreadsPerCore": 2}
    return {"InstanceType": kind, "CpuOptions": cores, "Tags": [{"Key": k, "Value": v} for k, v in tags], **rest}


def node(version="7", **rest):
    tags = {"flightline:cluster": "train-p5", "flightline:role": "gpu-node"}
    tags |= {"aws:ec2launchtemplate:id": "lt-0123456789abcdef0", "aws:ec2launchtemplate:version": version}
    return instance("p5.48xlarge", tags.items(), CapacityReservationId=CR, **rest)


class Account:
    """Healthy and with room, until a case changes it. An answer that is text is the code of an error."""

    def __init__(self):
        self.image = {"ImageId": AMI, "State": "available", "ImageOwnerAlias": "amazon", "Description": SUPPORTED}
        self.reservations, self.instances, self.templates = [reservation()], [], {}
        self.offered, self.quotas = ["use1-az1", "use1-az2", "use1-az3"], {}
        self.errors = {}

    def answer(self, region, operation, asked):
        error = self.errors.get((region, operation)) or self.errors.get(operation) or self.errors.get("*")
        if error:
            return error
        return getattr(self, operation, lambda _: {})(asked)

    def GetCallerIdentity(self, _):
        return {"Account": "123456789012", "Arn": "arn:aws:iam::123456789012:user/me", "UserId": "AIDA"}

    def DescribeRegions(self, asked):
        return {"Regions": [{"RegionName": name, "OptInStatus": "not-opted-in"} for name in asked["RegionNames"]]}

    def DescribeAvailabilityZones(self, _):
        ids = (("a", 1), ("b", 2), ("c", 3))
        return {"AvailabilityZones": [{"ZoneName": f"us-east-1{a}", "ZoneId": f"use1-az{n}"} for a, n in ids]}

    def DescribeInstanceTypeOfferings(self, _):
        return {"InstanceTypeOfferings": [{"Location": zone} for zone in self.offered]}

    def DescribeInstanceTypes(self, asked):
        found = [(kind, {"DefaultVCpus": VCPUS.get(kind, 192)}) for kind in asked["InstanceTypes"]]
        return {"InstanceTypes": [{"InstanceType": kind, "VCpuInfo": cpus} for kind, cpus in found]}

    def DescribeCapacityReservations(self, asked):
        found = [one for one in self.reservations if one["CapacityReservationId"] in asked["CapacityReservationIds"]]
        return {"CapacityReservations": found} if found else "InvalidCapacityReservationId.NotFound"

    def DescribeInstances(self, _):
        return {"Reservations": [{"Instances": self.instances}]}

    def DescribeImages(self, _):
        return {"Images": [self.image] if self.image else []}

    def DescribeLaunchTemplateVersions(self, asked):
        text = base64.b64encode(self.templates[asked["Versions"][0]].encode()).decode()
        return {"LaunchTemplateVersions": [{"LaunchTemplateData": {"UserData": text}}]}

    def GetParameter(self, _):
        return {"Parameter": {"Value": AMI}}

    def GetServiceQuota(self, asked):
        value = self.quotas.get(asked["QuotaCode"], 10000.0)
        return {"Quota": {"Value": value}} if value is not None else "NoSuchResourceException"

    def GetAWSDefaultServiceQuota(self, _):
        return {"Quota": {"Value": 0.0}}


current: Account


@cache
def client(service, region):
    made = boto3.client(service, region_name=region, aws_access_key_id="x", aws_secret_access_key="x")
    asked = {}

    def note(params, model, **_):
        asked[model.name] = dict(params)

    def answer(model, **_):
        said = current.answer(region, model.name, asked[model.name])
        if isinstance(said, str):
            return SimpleNamespace(status_code=400), {"Error": {"Code": said, "Message": "said by the stand-in"}}
        assert validate_parameters(said, model.output_shape) is None
        return SimpleNamespace(status_code=200), said

    made.meta.events.register("provide-client-params.*.*", note)
    made.meta.events.register("before-call.*.*", answer)
    return made


def clients(region):
    given = Clients(region)
    for service in ("ec2", "ssm", "sts", "service-quotas"):
        given.use(service, client(service, region))
    return given


def look(change=lambda _: None, stack="p5-reservation", shipped=lambda _: ready.Shipped("a" * 64, "b" * 64), **changes):
    global current
    current = Account()
    change(current)
    return ready.look({**describe.values(stack, ROOT), **changes}, clients, NOW, shipped)


def ids(found, state):
    return {one.id for one in found.answers if one.state == state}


def held(**rest):
    return lambda account: account.reservations.__setitem__(0, reservation(**rest))


def has(**rest):
    return lambda account: account.__dict__.update(rest)


def says(*pairs):
    return has(errors=dict(pairs))


BLOCK = {"capacityType": "capacity-block"}
DEMAND = {"capacityType": "on-demand", "capacityReservationId": ""}
SPOT = {"capacityType": "spot", "capacityReservationId": ""}
B200 = {
    "gpuInstanceType": "p6-b200.48xlarge",
    **DEMAND,
    "ami": AMI,
    "fsxSizeGib": 0,
    "fsxEfa": False,
    "fsxDataRepository": "",
}
TOMORROW = NOW + timedelta(days=1)
DENIED, THROTTLED, EXPIRED = "UnauthorizedOperation", "RequestLimitExceeded", "ExpiredToken"

CASES = {
    "all is well": (held(), {}, 0, set(), set()),
    "a block that begins tomorrow": (
        held(ReservationType="capacity-block", State="scheduled", StartDate=TOMORROW), BLOCK, 1, {"reservation.state"}, set()),
    "a block in another zone": (
        held(ReservationType="capacity-block", AvailabilityZone="us-east-1b", AvailabilityZoneId="use1-az2"),
        BLOCK, 1, {"reservation.zone"}, set()),
    "a block that ends in half an hour": (
        held(ReservationType="capacity-block", EndDate=NOW + timedelta(minutes=30)), BLOCK, 1, {"reservation.end"}, set()),
    "a block named as a reservation": (held(ReservationType="capacity-block"), {}, 1, {"reservation.kind"}, set()),
    "six reserved for eight nodes": (
        held(TotalInstanceCount=6, AvailableInstanceCount=6), {}, 1, {"reservation.count"}, set()),
    "eight reserved, three of them in use by others": (held(AvailableInstanceCount=5), {}, 1, {"reservation.free"}, set()),
    "eight reserved, three of them in use by this cluster": (
        lambda account: (held(AvailableInstanceCount=5)(account), account.instances.extend(3 * [node()]),
                         account.templates.update({"7": ""})), {}, 0, set(), set()),
    "a reservation that was cancelled": (held(State="cancelled"), {}, 1, {"reservation.state"}, set()),
    "a payment that failed": (held(State="payment-failed"), {}, 1, {"reservation.state"}, set()),
    "a reservation of another account": (has(reservations=[]), {}, 1, {"reservation"}, set()),
    "a reservation of another type": (held(InstanceType="p4d.24xlarge"), {}, 1, {"reservation.type"}, set()),
    "dedicated tenancy": (held(Tenancy="dedicated"), {}, 1, {"reservation.tenancy"}, set()),
    "another platform": (held(InstancePlatform="SUSE Linux"), {}, 1, {"reservation.platform"}, set()),
    "made inside a placement group": (
        held(PlacementGroupArn="arn:aws:ec2:us-east-1:123456789012:placement-group/theirs"),
        {}, 1, {"reservation.placement"}, set()),
    "all wrong, but no node is wanted": (held(State="cancelled"), {"gpuNodeCount": 0}, 0, set(), set()),
    "no vCPU of P on demand": (has(quotas={P_DEMAND: 0.0}), DEMAND, 1, {f"quota.{P_DEMAND}"}, set()),
    "no quota of P was ever applied": (has(quotas={P_DEMAND: None}), DEMAND, 1, {f"quota.{P_DEMAND}"}, set()),
    "enough, had nobody else some": (
        has(quotas={P_DEMAND: 1536.0}, instances=[instance("p5.48xlarge")]), DEMAND, 1, {f"quota.{P_DEMAND}"}, set()),
    "enough, beside this cluster's own": (
        has(quotas={P_DEMAND: 1536.0}, instances=[node()], templates={"7": ""}), DEMAND, 0, set(), set()),
    "a spot quota is another one": (
        has(quotas={P_DEMAND: 0.0, P5_SPOT: 191.0}), SPOT, 1, {f"quota.{P5_SPOT}"}, set()),
    "a head node takes a quota too": (has(quotas={STANDARD: 0.0}), {}, 1, {f"quota.{STANDARD}"}, set()),
    "a reservation needs no quota": (has(quotas={P_DEMAND: 0.0}), {}, 0, set(), set()),
    "the type is not offered in the zone": (has(offered=["use1-az2"]), {}, 1, {"offering"}, set()),
    "the type is not offered in the region": (has(offered=[]), {}, 1, {"offering"}, set()),
    "the image was deregistered": (has(image=None), {"ami": AMI}, 1, {"image"}, set()),
    "the image is disabled": (has(image={"ImageId": AMI, "State": "disabled"}), {"ami": AMI}, 1, {"image"}, set()),
    "the parameter is gone": (says(("GetParameter", "ParameterNotFound")), {}, 1, {"image"}, set()),
    "AWS' image for the type": (held(), B200, 0, set(), set()),
    "an image that does not say its driver": (
        has(image={"ImageId": AMI, "State": "available", "Description": SUPPORTED}), B200, 2, set(), {"driver"}),
    "an image with too old a driver": (
        has(image={"ImageId": AMI, "State": "available", "Tags": [{"Key": "flightline:driver", "Value": "550.163.01"}]}),
        B200, 1, {"driver"}, set()),
    "an image with a driver that does": (
        has(image={"ImageId": AMI, "State": "available", "Tags": [{"Key": "flightline:driver", "Value": "570.0"}]}),
        B200, 0, set(), set()),
    "AWS' image, not for the type": (held(), {**B200, "gpuInstanceType": "g7.48xlarge"}, 1, {"driver"}, set()),
    "credentials expired": (says(("*", EXPIRED)), {}, 1, {"credentials"}, set()),
    "credentials of another account": (held(), {"aws:allowedAccountIds": ["210987654321"]}, 1, {"account"}, set()),
    "throttled at once": (says(("*", THROTTLED)), {}, 2, set(), {"credentials"}),
    "throttled": (says(("DescribeCapacityReservations", THROTTLED)), {}, 2, set(), {"reservation"}),
    "no permission for quotas": (
        says(("GetServiceQuota", "AccessDeniedException")), DEMAND, 2, set(),
        {f"quota.{P_DEMAND}", f"quota.{STANDARD}"}),
    "no permission to see instances": (
        says(("DescribeInstances", DENIED)), {}, 2, set(), {f"quota.{STANDARD}", "nodes"}),
    "no list of instances for a reservation that is partly in use": (
        lambda account: (held(AvailableInstanceCount=5)(account), account.errors.update({"DescribeInstances": DENIED})),
        {}, 2, set(), {"reservation.free", f"quota.{STANDARD}", "nodes"}),
    "no permission for zones": (says(("DescribeInstanceTypeOfferings", DENIED)), {}, 2, set(), {"offering"}),
    "one answer is bad and one is missing": (
        says(("GetServiceQuota", "ThrottlingException"), ("DescribeImages", "InvalidAMIID.NotFound")),
        {}, 1, {"image"}, {f"quota.{STANDARD}"}),
}  # fmt: skip


@pytest.mark.parametrize(("account", "changes", "status", "bad", "unknown"), CASES.values(), ids=CASES)
def test_an_account_is_judged(account, changes, status, bad, unknown):
    found = look(account, **changes)
    assert (ids(found, readiness.NOT_READY), ids(found, readiness.UNKNOWN)) == (bad, unknown), "\n".join(
        map(str, found.answers)
    )
    assert found.status == status
    for one in found.answers:
        assert one.saw and (one.state == readiness.READY or (one.wanted and one.do)), one


def test_a_region_that_is_not_enabled_is_told_from_credentials_that_do_not_serve():
    """Its own endpoints refuse the credentials; another region of the account answers."""
    disabled = says((("ap-southeast-5", "GetCallerIdentity"), "InvalidClientTokenId"))
    found = look(disabled, **{"aws:region": "ap-southeast-5"})
    (one,) = found.answers
    assert (one.id, one.state, found.status) == ("region", readiness.NOT_READY, 1)
    assert "not-opted-in" in one.saw and "aws account enable-region --region-name ap-southeast-5" in one.do


@pytest.mark.parametrize("stack", [name for name in STACKS if name != "local"])
def test_only_what_the_settings_want_is_asked(stack):
    where, seen = describe.values(stack, ROOT)["aws:region"], []
    zones = [{"ZoneName": f"{where}{letter}", "ZoneId": f"use1-az{n}"} for n, letter in enumerate("abc", 1)]

    def account(one):
        one.DescribeAvailabilityZones = lambda _: {"AvailabilityZones": zones}
        one.answer = lambda *asked: seen.append(asked[1]) or Account.answer(one, *asked)

    look(account, stack)
    bought = stack in ("p5-reservation", "p5en-capacity-block", "eks")
    assert ("DescribeCapacityReservations" in seen, "DescribeImages" in seen) == (bought, stack != "eks")
    assert "GetServiceQuota" in seen, "of the nodes, of the head node or of those beside"


def test_interfaces_and_node_groups_are_asked_for_before_their_default_is_met():
    def codes(stack="dev", **changes):
        return {one.quota.code for one in quotas.needs(settings(stack, **changes), "reservation")}

    many = {"gpuInstanceType": "p5.48xlarge", "gpuNodeCount": 75}
    assert codes(**many) == set() and codes(**{**many, "gpuNodeCount": 76}) == {"L-DF5E4CA3"}
    wide = {"podsPerNode": 10, "privateSubnetCidrs": ["10.0.64.0/18", "10.0.128.0/18"]}
    assert "L-BD136A63" in codes("eks", gpuNodeMaximum=451, **wide) - codes("eks", gpuNodeMaximum=450, **wide)


def test_the_request_for_more_is_in_the_answer():
    (one,) = [one for one in look(has(quotas={P_DEMAND: 0.0}), **DEMAND).answers if one.id == f"quota.{P_DEMAND}"]
    assert one.link == f"https://us-east-1.console.aws.amazon.com/servicequotas/home/services/ec2/quotas/{P_DEMAND}"
    assert f"--service-code ec2 --quota-code {P_DEMAND} --desired-value 1536 --region us-east-1" in one.do
    assert "8 x p5.48xlarge" in one.wanted and "0" in one.saw


def test_every_type_on_sale_has_a_quota_or_is_said_to_have_none_known():
    known, unknown = {}, set()
    for kind in instance_types.known():
        for way in instance_types.facts(kind).capacities & {"on-demand", "spot"}:
            found = quotas.of_type(kind, spot=way == "spot")
            known[kind, way] = found.code if found else ""
            unknown |= {f"{way} {kind.split('.')[0]}"} if not found else set()
    assert unknown == {"spot p6-b200", "spot p6-b300"}, "no public list names the spot quota of P6"
    assert known["p5.48xlarge", "spot"] != known["p4d.24xlarge", "spot"]
    assert (known["g6.xlarge", "on-demand"], known["gr6.4xlarge", "on-demand"]) == (G_DEMAND, G_DEMAND)


ORDER = [f"reservation {CR} us-east-1a", f"capacity-block {OTHER} us-east-1b", "on-demand", "spot"]
ORDERED = {
    **DEMAND,
    "capacityOrder": ORDER,
    "availabilityZones": [],
    "fsxSizeGib": 0,
    "fsxEfa": False,
    "fsxDataRepository": "",
}
BLOCK_OF_8 = reservation(CapacityReservationId=OTHER, ReservationType="capacity-block", AvailabilityZone="us-east-1b")


@pytest.mark.parametrize(
    ("account", "way", "status"),
    [
        (held(), 0, 0),
        (has(reservations=[reservation(State="cancelled"), BLOCK_OF_8]), 1, 0),
        (has(reservations=[]), 2, 0),
        (has(reservations=[], quotas={P_DEMAND: 0.0}), 3, 0),
        (has(reservations=[], quotas={P_DEMAND: 0.0, P5_SPOT: 0.0}), None, 1),
        # What is not known is passed over by nobody: the next way costs more.
        (says(("DescribeCapacityReservations", THROTTLED)), None, 2),
        (has(reservations=[], errors={"DescribeInstances": DENIED}), None, 2),
    ],
)
def test_the_first_way_of_the_users_order_that_is_ready_is_taken(account, way, status):
    found = look(account, **ORDERED)
    assert (found.status, found.way) == (status, "" if way is None else ORDER[way])
    passed = [one for one in found.answers if one.state == readiness.PASSED_OVER]
    assert way is None or bool(passed) == bool(way)


def test_nodes_with_other_roles_than_those_to_come_are_counted():
    old = "PACKAGE_SHA256='{}'\\nROLES_SHA256='{}'".format("c" * 64, "b" * 64)
    new = "PACKAGE_SHA256='{}'\\nROLES_SHA256='{}'".format("a" * 64, "b" * 64)
    account = has(instances=[node("6"), node("6"), node("7")], templates={"6": old, "7": new})
    (one,) = [one for one in look(account).answers if one.id == "nodes"]
    assert (
        one.state == readiness.READY and "2 of 3 nodes" in one.saw and "library" in one.saw and "roles" not in one.saw
    )
    assert "start-instance-refresh" in one.do and "make configure" in one.do
    (same,) = [one for one in look(has(instances=[node("7")], templates={"7": new})).answers if one.id == "nodes"]
    assert "0 of 1 node" in same.saw and not same.do


def run(tmp_path, monkeypatch, account, *arguments, stack="p5-reservation"):
    global current
    current = Account()
    account(current)
    monkeypatch.setattr(ready, "Clients", clients)
    monkeypatch.setattr(ready, "shipped", lambda _: ready.Shipped("a" * 64, "b" * 64))
    monkeypatch.setattr(ready, "now", lambda: NOW)
    return CliRunner().invoke(ready.command, [stack, "--project", str(ROOT), *arguments])


def test_the_command_prints_a_sentence_an_answer_and_ends_by_the_rule(tmp_path, monkeypatch):
    done = run(tmp_path, monkeypatch, held(State="cancelled"))
    assert done.exit_code == 1
    lines = done.output.splitlines()
    assert [line for line in lines if line.startswith("not ready")] == [
        line for line in lines if "reservation.state" in line
    ]
    assert all(" saw " in line for line in lines)
    listed = json.loads(run(tmp_path, monkeypatch, held(State="cancelled"), "--json").output)
    assert {"id", "state", "saw", "wanted", "do", "link"} == set(listed["answers"][0])
    assert run(tmp_path, monkeypatch, held()).exit_code == 0
    assert run(tmp_path, monkeypatch, says(("GetParameter", THROTTLED))).exit_code == 2
    emulated = run(tmp_path, monkeypatch, says(("*", DENIED)), stack="local")
    assert emulated.exit_code == 0 and "emulator" in emulated.output
    assert run(tmp_path, monkeypatch, held(), stack="nowhere").exit_code != 0


def test_the_installed_command_finds_what_it_ships(tmp_path):
    """Started from its own folder, without the repository's root on the path."""
    script = "from infra import ready; from types import SimpleNamespace as N; print(ready.shipped(N(boot=N(configure=False, package=None))).package)"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert len(done.stdout.strip()) == 64, done.stderr


def test_on_an_emulator_what_it_has_is_answered_and_what_it_lacks_is_not_known(server):
    """moto has zones, offerings, images, parameters and instances; of quotas only VPC's."""
    server.reset()
    lacks = "GetAWSDefaultServiceQuota"  # moto ends such a request with a traceback
    server.before = lambda action: (400, "AccessDeniedException") if action == lacks else None

    def emulated(region):
        given = Clients(region)
        for service in ("ec2", "ssm", "sts", "service-quotas"):
            given.use(service, server.client(service))
        return given

    image = server.client("ec2").describe_images()["Images"][0]["ImageId"]
    stack = {**describe.values("dev", ROOT), "aws:region": "eu-west-1", "ami": image, "gpuInstanceType": "g5.xlarge"}
    found = ready.look(stack, emulated, NOW)
    assert ids(found, readiness.READY) == {"account", "offering", "image"}
    assert (ids(found, readiness.UNKNOWN), found.status) == ({f"quota.{G_DEMAND}"}, 2)
    gone = ready.look({**stack, "ami": "ami-0aaaaaaaaaaaaaaaa"}, emulated, NOW)
    assert ids(gone, readiness.NOT_READY) == {"image"} and gone.status == 1
