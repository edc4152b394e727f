"""Configuration: what a stack may say, and that everything else is refused at once, before any resource."""

import ast
import asyncio
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pulumi
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import infra.settings
from infra.config.declare import Key, declared, keys, sections, setting
from infra.config.errors import ConfigError
from infra.config.model import BY_NAME, KEYS, KubernetesSettings, StackSettings
from infra.config.reader import read
from infra.node_package import mistake
from infra.planning import fsx
from infra.planning.zones import Zone, ZoneOffering
from tests.infra.plans.test_kubernetes import EKS, REFUSED
from tests.infra.program import JOINED, SUBNETS, TOPIC, VPC
from tests.infra.stacks import PREFIX, ROOT, STACKS, config, offer, region, settings, values
from tools import stack_settings

REGION = "us-east-1"
WEBHOOK = "https://hooks.slack.com/services/T00000000/B00000000/abcdefghijklmnopqrstuvwx"
ZONE = {"availabilityZones": ["us-east-1a"]}
BLOCK = {"gpuInstanceType": "p5en.48xlarge", "capacityType": "capacity-block", **ZONE}
RESERVATION = {"capacityType": "reservation", **ZONE}
RESERVATION_ID = "cr-0123456789abcdef0"
ID = {"capacityReservationId": RESERVATION_ID}
SSH = {"accessMode": "ssh", "sshKeyName": "me"}
OFFICE = {**SSH, "sshCidrs": ["203.0.113.0/24"]}
P5 = {"gpuInstanceType": "p5.48xlarge"}
LINKED = {"fsxSizeGib": 1200, "fsxDataRepository": "data"}


def taken(raw):
    """The settings of these values."""
    return read(raw, REGION, lambda _: offer(REGION))


def errors(raw, **options):
    """key -> texts of the mistakes of these values; empty when they are accepted."""
    options = {"region": REGION, "lookup": lambda _: offer(REGION), **options}
    try:
        read(raw, **options)
    except ConfigError as error:
        found: dict[str, list[str]] = {}
        for mistake in error.mistakes:
            found.setdefault(mistake.key, []).append(str(mistake))
        return found
    return {}


def only(raw, key, *, says, **options):
    """These values have mistakes of one key only, and its text says what was wanted."""
    found = errors(raw, **options)
    assert set(found) == {key}, found
    text = " ".join(found[key])
    assert says in text
    return text


@pytest.mark.parametrize("stack", STACKS)
def test_example_stack_is_accepted(stack):
    assert settings(stack).region == region(stack)


def test_an_empty_stack_is_accepted_and_modest():
    found = taken({})
    assert (found.nodes.count, found.nodes.maximum, found.nodes.efa) == (1, 1, False)
    assert found.access.mode == "ssm"
    assert found.storage.keep_data
    assert found.network.private_cidrs == ("10.0.101.0/24", "10.0.102.0/24")


def test_project_file_and_docs_follow_from_the_declarations():
    text = (ROOT / "Pulumi.yaml").read_text()
    assert stack_settings.project(text) == text, "run: python -m tools.stack_settings"
    assert stack_settings.page() == (ROOT / "docs" / "settings.md").read_text(), "run: python -m tools.stack_settings"


def test_yaml_reads_back_what_is_declared():
    declared = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["config"]
    assert list(declared) == [key.name for key in KEYS]
    for key in KEYS:
        entry = declared[key.name]
        default = tuple(entry["default"]) if isinstance(entry["default"], list) else entry["default"]
        assert (entry["type"], default, entry["description"]) == (key.kind, key.default, key.description), key.name
        assert type(default) is type(key.default), key.name
        # The CLI refuses a plain default of a key declared secret (pulumi/sdk/go/common/workspace/config.go), for every
        # stack that does not set it; settings.py demands the encryption instead.
        assert "secret" not in entry
        assert entry.get("items") == ({"type": "string"} if key.kind == "array" else None)


@pytest.mark.parametrize("text", ["no: 1", "a # b", '"x" first', "- a", "50", "{x}", "ends:", "* all", "x 'y' z"])
def test_any_description_and_default_survives_yaml(text):
    key = Key("x", text, text)
    assert yaml.safe_load(stack_settings.entry(key))["x"] == {"type": "string", "description": text, "default": text}


@pytest.mark.parametrize("word", ["yes", "no", "true", "null", "off", "none", "1e3", "2026-11-22", ""])
def test_a_default_stays_text(word):
    assert yaml.safe_load(stack_settings.entry(Key("x", word, "what")))["x"]["default"] == word


def test_a_new_setting_needs_its_declaration_only():
    @dataclass(frozen=True, kw_only=True)
    class Extra:
        wait_minutes: int = setting("waitMinutes", 5, "How long to wait.", within=(1, 9), unit="minutes")

    (key,) = keys(Extra)
    assert (key.name, key.kind, key.accepted) == ("waitMinutes", "integer", "1 to 9 minutes")
    assert Extra().wait_minutes == 5 and not key.admits(10) and key.admits(9)


def test_every_default_is_one_that_its_declaration_admits():
    assert [key.name for key in KEYS if not key.admits(key.default)] == []


def test_every_derived_key_is_read_by_its_section():
    """A setting reads itself; a derived key that nothing reads would be a promise that the stack does not keep."""
    files = [path for path in (ROOT / "infra" / "config").glob("*.py") if path.name != "model.py"]
    text = "\n".join(path.read_text() for path in files)
    assert [key.name for key in KEYS if key.derived and f'"{key.name}"' not in text] == []


def test_every_declared_setting_is_used():
    """By a component, a plan, an output or a check: a setting without effect would be a promise that is not kept."""
    text = "\n".join(path.read_text() for path in (ROOT / "infra").rglob("*.py") if path.name != "model.py")
    fields = {(section, name) for section in sections(StackSettings) for name in declared(section)}
    assert [name for _, name in fields if not re.search(rf"\.{name}\b", text)] == []


def test_example_stacks_use_declared_keys_only():
    for stack in STACKS:
        assert set(values(stack)) <= set(BY_NAME)
        assert all(key.startswith((PREFIX, "aws:")) for key in config(stack))


def test_only_settings_reads_the_configuration():
    readers = []
    for path in sorted((ROOT / "infra").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr == "Config" and ast.unparse(node) == "pulumi.Config":
                readers.append(path.relative_to(ROOT).as_posix())
    assert set(readers) == {"infra/settings.py"}


SPOT = {"capacityType": "spot", "gpuInstanceType": "g6e.48xlarge", "efa": "off", "placementGroup": "none"}
BAD = [
    ("vpcId", {**JOINED, "vpcId": "vpc-1"}, "id such as vpc-0123456789abcdef0"),
    ("subnetIds", {"subnetIds": [*SUBNETS]}, "the VPC that it is of"),
    ("subnetIds", {"vpcId": VPC}, "in the order of availabilityZones: us-east-1a"),
    ("subnetIds", {**JOINED, "subnetIds": ["subnet-x"]}, "ids such as"),
    ("subnetIds", {**JOINED, "subnetIds": [SUBNETS[0]] * 2}, "each id once"),
    ("subnetIds", {**EKS, **JOINED, "subnetIds": [SUBNETS[0]]}, "availabilityZones: us-east-1a, us-east-1b"),
    ("publicSubnetId", {**JOINED, **OFFICE, "headNode": True}, "reached by SSH"),
    ("routeTableIds", {**JOINED, "routeTableIds": ["rtb"]}, "ids such as"),
    ("existingEndpoints", {**JOINED, "existingEndpoints": ["s4"]}, "services of autoscaling, dynamodb"),
    ("vpcCidr", {**JOINED, "vpcCidr": "10.0.0.0/17"}, "its default with vpcId"),
    ("securityGroupId", {"securityGroupId": "sg-01234567"}, "vpcId as well"),
    ("fsxId", {"fsxId": "fs-01234567"}, "vpcId as well"),
    ("fsxSizeGib", {**JOINED, "fsxId": "fs-01234567", "fsxSizeGib": 1200}, "its default with fsxId"),
    ("fsxExport", {**LINKED, "dataBucket": "theirs", "fsxExport": "new"}, "with dataBucket"),
    ("dataBucket", {"dataBucket": "No"}, "name such as my-data"),
    ("checkpointsBucket", {"checkpointsBucket": "No"}, "name such as my-checkpoints"),
    ("alertsTopicKey", {"alertsTopic": "theirs"}, "together, or neither"),
    ("alertsTopic", {"alertsTopicKey": TOPIC["alertsTopicKey"]}, "together, or neither"),
    ("eksCluster", {**EKS, "kubernetesAdmins": [], "eksCluster": "theirs"}, "vpcId as well"),
    ("kubernetesAdmins", {**EKS, **JOINED, "eksCluster": "theirs"}, "its default with eksCluster"),
    ("spotZones", {**SPOT, "spotZones": 2, "efa": "on", "gpuNodeCount": 2}, "EFA traffic stays inside"),
    ("spotZones", {**SPOT, "spotZones": 2, "placementGroup": "mine"}, "placement group lies in one"),
    ("spotMaxPriceUsd", {**SPOT, "spotMaxPriceUsd": "0"}, "more than 0"),
    ("spotMaxPriceUsd", {**SPOT, "spotMaxPriceUsd": "1,5"}, "US dollars"),
    ("spotInstanceTypes", {**SPOT, "spotInstanceTypes": ["g6e.48xlarge"]}, "not again"),
    ("spotInstanceTypes", {**SPOT, "spotInstanceTypes": ["g6.48xlarge"] * 2}, "each type once"),
    ("spotInstanceTypes", {**SPOT, "spotInstanceTypes": ["g6e.47xlarge"]}, "for example g6e"),
    ("spotInstanceTypes", {**SPOT, "spotInstanceTypes": ["g6e.xlarge"]}, "types with 8 GPUs"),
    ("spotInstanceTypes", {**SPOT, "spotInstanceTypes": ["trn1.32xlarge"]}, "share an image"),
    ("spotRebalance", {"spotRebalance": True}, "nothing with capacityType on-demand"),
    ("spotZones", {"spotZones": 2}, "nothing with capacityType on-demand"),
    ("gpuIdleHours", {"gpuIdleHours": 1, "thresholdGpuUtilizationPercent": 0}, "says what idle is"),
    ("gpuIdleHours", {"gpuIdleHours": 1, "gpuInstanceType": "trn1.2xlarge"}, "no NVIDIA GPU"),
    ("gpuIdleScaleIn", {"gpuIdleScaleIn": True}, "gpuIdleHours of 1"),
    ("gpuIdleScaleIn", {"gpuIdleHours": 1, "gpuIdleScaleIn": True, "scaleInProtection": True}, "would stay"),
    ("nodeSchedule", {"nodeSchedule": ["0 20 * * MON-FRI"]}, "five cron fields"),
    ("nodeSchedule", {"nodeSchedule": ["0 20 * * MON-FRO = 0"]}, "five cron fields"),
    ("nodeSchedule", {"nodeSchedule": ["0 24 * * * = 0"]}, "five cron fields"),
    ("nodeSchedule", {"nodeSchedule": ["*/0 1 * * * = 0"]}, "five cron fields"),
    ("nodeSchedule", {"nodeSchedule": ["0 8 * * * = 2"]}, "gpuNodeMinimum (0) to gpuNodeMaximum (1)"),
    ("scaleInProtection", {"nodeSchedule": ["0 8 * * * = 1"], "scaleInProtection": True}, "protected nodes would stay"),
    ("nodeScheduleTimeZone", {"nodeScheduleTimeZone": "Berlin"}, "Europe/Berlin"),
    ("clusterName", {"clusterName": "Train"}, "small letters"),
    ("clusterName", {"clusterName": "a--b"}, "single hyphens"),
    ("clusterName", {"clusterName": "ab"}, "three"),
    ("clusterName", {"clusterName": "a-cluster-with-quite-a-long-name"}, "at most"),
    ("availabilityZones", {"availabilityZones": ["us-east-1"]}, "zone names"),
    ("availabilityZones", {"availabilityZones": ["us-west-2a"]}, "a zone of the region: us-east-1a (use1-az1)"),
    ("vpcCidr", {"vpcCidr": "10.0.0.0/15"}, "/16 to /28"),
    ("vpcCidr", {"vpcCidr": "10.0.0.1/16"}, "the block's first address: 10.0.0.0/16"),
    ("vpcCidr", {"vpcCidr": "8.8.0.0/16"}, "inside one of 10.0.0.0/8"),
    ("vpcCidr", {"vpcCidr": "ten"}, "an IPv4 block"),
    ("privateSubnetCidrs", {"privateSubnetCidrs": ["10.1.0.0/24", "10.0.102.0/24"]}, "inside the VPC's 10.0.0.0/16"),
    ("privateSubnetCidrs", {"privateSubnetCidrs": ["10.0.2.0/24", "10.0.102.0/24"]}, "a block apart from 10.0.2.0/24"),
    ("privateSubnetCidrs", {"privateSubnetCidrs": ["10.0.101.0/24"]}, "2 blocks"),
    ("privateSubnetCidrs", {"privateSubnetCidrs": ["10.0.101.0/29", "10.0.102.0/24"]}, "/16 to /28"),
    ("privateSubnetCidrs", {"gpuNodeCount": 300}, "316 addresses"),
    ("publicSubnetCidrs", {"publicSubnetCidrs": ["10.0.1.0/24", "10.0.1.128/25"]}, "apart from 10.0.1.0/24"),
    ("publicSubnetCidrs", {"publicSubnetCidrs": "10.0.1.0/24"}, "a list of text"),
    ("natGateways", {"natGateways": "none"}, "interfaceEndpoints true"),
    ("packageSource", {"natGateways": "none", "interfaceEndpoints": True}, "natGateways one"),
    ("packageSource", {"packageSource": "image"}, "an image of your own"),
    ("amiPin", {"amiPin": "latest"}, "an image id"),
    ("gpuInstanceType", {"gpuInstanceType": "m5.large"}, "a GPU, Trainium or Inferentia type"),
    ("gpuInstanceType", {"gpuInstanceType": "p5.48xlrage"}, "p5.48xlarge"),
    ("gpuNodeCount", {"gpuNodeCount": -1}, "0 (the group without nodes) to 5000"),
    ("gpuNodeCount", {"gpuNodeCount": 0, "gpuNodeMinimum": 1}, "at least gpuNodeMinimum, 1"),
    ("gpuNodeCount", {"gpuNodeCount": 2, "gpuNodeMinimum": 3}, "at least gpuNodeMinimum, 3"),
    ("gpuNodeCount", {"gpuNodeCount": "two"}, "a whole number"),
    ("gpuNodeMaximum", {"gpuNodeCount": 4, "gpuNodeMaximum": 3}, "gpuNodeCount (4)"),
    ("gpuNodeMinimum", {"gpuNodeMinimum": -1}, "0 or more"),
    ("efa", {"efa": "on", "gpuInstanceType": "g6.xlarge"}, "g6.xlarge has no EFA"),
    ("capacityType", {"capacityType": "capacity-block", **ID, **ZONE}, "g6.xlarge is sold"),
    ("availabilityZones", {"capacityType": "reservation", **ID}, "the zone of the reservation"),
    ("availabilityZones", {**BLOCK, "availabilityZones": [], **ID}, "the zone of the capacity-block"),
    ("capacityReservationId", RESERVATION, "the reservation's id"),
    ("capacityReservationId", BLOCK, "the capacity-block's id"),
    ("capacityReservationId", {"capacityType": "spot", **ID}, "nothing with capacityType spot"),
    ("capacityReservationId", {**BLOCK, "capacityReservationId": "cr-123"}, "17 hexadecimal digits"),
    ("gpuNodeCount", {**BLOCK, **ID, "gpuNodeCount": 65}, "at most 64"),
    ("placementGroup", {**BLOCK, **ID, "placementGroup": "cluster"}, "auto or none"),
    (
        "placementGroup",
        {**RESERVATION, **ID, "placementGroup": "cluster"},
        "the group that the reservation was made in",
    ),
    ("placementGroup", {"placementGroup": "a group"}, "name of an existing group"),
    ("ami", {"ami": "ubuntu"}, "an image id"),
    ("ami", {"ami": "/aws/service/deeplearning/ami/arm64/x/latest/ami-id"}, "an image for x86_64"),
    ("ami", {"gpuInstanceType": "p3dn.24xlarge"}, "needs Turing"),
    ("amiUser", {"amiUser": "Root!"}, "a login name"),
    ("sshCidrs", {"sshCidrs": ["203.0.113.0/24"]}, "nothing with accessMode ssm"),
    ("sshCidrs", SSH, "with accessMode ssh"),
    ("sshCidrs", {**SSH, "sshCidrs": ["0.0.0.0/0"]}, "never open to the world"),
    ("sshCidrs", {**SSH, "sshCidrs": ["0.0.0.0/1", "128.0.0.0/1"]}, "128.0.0.0/1"),
    ("sshCidrs", {**SSH, "sshCidrs": ["::/0"]}, "an IPv4 block"),
    ("sshCidrs", OFFICE, "GPU nodes have no public address"),
    ("sshKeyName", {"accessMode": "ssh", "sshCidrs": ["10.0.0.0/8"]}, "EC2 key pair"),
    ("sshKeyName", {"sshKeyName": "me"}, "uses no key"),
    ("headInstanceType", {"headInstanceType": "big"}, "an EC2 type"),
    ("headInstanceType", {"gpuInstanceType": "g5g.xlarge", "headNode": True}, "a type for arm64 such as m7g.xlarge"),
    ("headInstanceType", {"headInstanceType": "c7gn.xlarge", "orchestrator": "slurm"}, "for x86_64 such as m7i.xlarge"),
    ("fsxSizeGib", {"fsxSizeGib": 3000}, "2400 and 4800"),
    ("fsxSizeGib", {"fsxSizeGib": 100}, "1200 and 2400"),
    ("fsxSizeGib", {"fsxSizeGib": -1}, "1200 and 2400"),
    (
        "fsxSizeGib",
        {**P5, "fsxSizeGib": 4800, "fsxThroughput": 250, "fsxEfa": True},
        "at least 19200 GiB for EFA at 250",
    ),
    ("fsxSizeGib", {**P5, "fsxSizeGib": 20000, "fsxThroughput": 500, "fsxEfa": True}, "19200 and 28800"),
    ("fsxThroughput", {"fsxSizeGib": 1200, "fsxThroughput": 200}, "125, 250, 500, 1000"),
    ("fsxEfa", {"fsxEfa": True}, "no file system"),
    ("fsxEfa", {"fsxSizeGib": 19200, "fsxEfa": True}, "have no EFA interface"),
    ("fsxEfa", {"gpuInstanceType": "p4d.24xlarge", "fsxSizeGib": 19200, "fsxEfa": True}, "does not serve p4d.24xlarge"),
    ("fsxDataRepository", {"fsxDataRepository": "data"}, "no file system"),
    ("fsxDataRepository", {"fsxSizeGib": 1200, "fsxDataRepository": "my-bucket"}, "s3://bucket/prefix"),
    ("fsxExport", {"fsxExport": "new"}, "no file system"),
    ("fsxExport", {**LINKED, "fsxExport": "deleted"}, "none, new, new-and-changed"),
    ("fsxExport", {"fsxSizeGib": 1200, "fsxDataRepository": "s3://theirs/x", "fsxExport": "new"}, "no other bucket"),
    ("keepData", {"keepData": "maybe"}, "true or false"),
    ("alertEmails", {"alertEmails": ["ops@example"]}, "ops@example"),
    ("alertEmails", {"alertEmails": ["ops@example.com, x@example.com"]}, "an e-mail address"),
    ("alertEmails", {"alertEmails": ["ops@example.com", "ops@example.com"]}, "each address once"),
    ("logRetentionDays", {"logRetentionDays": 31}, "the nearest are 30 and 60"),
    ("logRetentionDays", {"logRetentionDays": 0}, "the nearest are 1 and 3"),
    ("logRetentionDays", {"logRetentionDays": 9999}, "the nearest are 3288 and 3653"),
    ("tags", {"tags": ["Owner"]}, "Key=Value"),
    ("tags", {"tags": ["aws:x=1"]}, "not under aws:"),
    ("tags", {"tags": ["flightline:role=gpu-node"]}, "not under aws: or flightline:"),
    ("tags", {"tags": ["Owner=a", "Owner=b"]}, "each key once"),
    ("tags", {"tags": ["Owner=a", "owner=b"]}, "each key once, Owner is there"),
    ("tags", {"tags": [f"k{index}=v" for index in range(31)]}, "at most 30"),
    ("permissionsBoundary", {"permissionsBoundary": "boundary"}, "a policy's ARN"),
    ("kmsKey", {"kmsKey": "alias/aws/s3"}, "not of an alias"),
    ("trustedAccounts", {"trustedAccounts": ["o-abc"]}, "twelve digits"),
    ("fsxRootSquash", {"fsxSizeGib": 1200, "fsxRootSquash": "nobody"}, "UID:GID"),
    ("fsxRootSquash", {"fsxRootSquash": "1:1"}, "there is no file system"),
    ("fsxNoSquash", {"fsxSizeGib": 1200, "fsxNoSquash": ["10.0.101.7@tcp"]}, "root is root everywhere"),
    ("fsxNoSquash", {"fsxSizeGib": 1200, "fsxRootSquash": "1:1", "fsxNoSquash": ["gpu-01"]}, "a Lustre NID"),
    ("fsxNoSquash", {"fsxSizeGib": 1200, "fsxRootSquash": "1:1", "fsxNoSquash": ["1.1.1.1@tcp"] * 65}, "at most 64"),
    ("emulatorEndpoint", {"emulatorEndpoint": "https://aws.example.com:443"}, "a loopback URL"),
    ("emulatorEndpoint", {"emulatorEndpoint": "http://127.0.0.1:5000@evil.example.com"}, "a loopback URL"),
    ("capacityOrder", {"capacityOrder": ["reserved"]}, "on-demand, spot, or KIND CR-ID ZONE"),
    ("capacityChosen", {"capacityChosen": "spot"}, "nothing without capacityOrder"),
    ("gpuNodeCuont", {"gpuNodeCuont": 4}, "did you mean gpuNodeCount?"),
]


@pytest.mark.parametrize(("key", "raw", "says"), BAD, ids=[f"{case[0]}-{n}" for n, case in enumerate(BAD)])
def test_bad_input_is_refused(key, raw, says):
    text = only(raw, key, says=says)
    assert text.startswith(f"{key}: saw ")


DECLARED = [key for key in KEYS if key.choices or key.within]
AROUND: dict[str, dict] = {
    **{key.name: EKS for key in declared(KubernetesSettings).values()},
    "spotAllocation": SPOT,
    "spotZones": SPOT,
    "fsxThroughput": {"fsxSizeGib": 1200},
    "fsxExport": LINKED,
}


@pytest.mark.parametrize("key", DECLARED, ids=lambda key: key.name)
def test_what_lies_outside_the_declaration_is_refused_with_what_it_says(key):
    outside = (
        [key.within[0] - 1, key.within[1] + 1] if key.within else [-1 if key.kind == "integer" else "none of them"]
    )
    for wrong in outside:
        (text, *_) = errors({**AROUND.get(key.name, {}), key.name: wrong})[key.name]
        assert text.startswith(f"{key.name}: saw ") and key.accepted in text


def test_a_group_waits_two_hours_for_a_node_at_most():
    assert "at most 60" in errors({"bootPreflightMinutes": 50, "configureMinutes": 61})["configureMinutes"][0]


@pytest.mark.parametrize(
    "raw",
    [
        {"gpuNodeCount": 2, "gpuNodeMinimum": 2, "gpuNodeMaximum": 2},
        {**SSH, "sshCidrs": ["10.0.0.0/8", "203.0.113.0/24"]},
        {**OFFICE, "headNode": True},
        {**OFFICE, "orchestrator": "slurm"},
        {"natGateways": "none", "interfaceEndpoints": True, "packageSource": "mirror"},
        {"packageSource": "image", "ami": "ami-0123456789abcdef0"},
        {"bootPreflightMinutes": 110, "configureAtBoot": False},
        {"bootPreflightMinutes": 50, "configureMinutes": 60},
        {"tags": ["Owner="]},
        {"gpuNodeCount": 0},
        {"gpuNodeCount": 0, "gpuNodeMaximum": 8, "nodeSchedule": ["0 8 * * MON-FRI = 8"]},
        {"gpuNodeCount": 235},
        {**BLOCK, **ID, "gpuNodeCount": 64},
        {"thresholdGpuUtilizationPercent": 0, "thresholdCpuPercent": 100},
        {"gpuInstanceType": "g5g.xlarge", "headNode": True, "headInstanceType": "m7g.xlarge"},
        {"gpuInstanceType": "g5g.xlarge"},
        {"headNode": True, "headInstanceType": "g6.xlarge"},
        {"permissionsBoundary": "arn:aws-us-gov:iam::123456789012:policy/path/boundary"},
    ],
)
def test_what_is_just_right_is_accepted(raw):
    assert errors(raw) == {}


EMULATOR = "http://[::1]:5000"


def test_an_emulator_is_accepted_where_every_service_is_sent_to_it():
    assert errors({"emulatorEndpoint": EMULATOR}, endpoints=frozenset({EMULATOR})) == {}


@pytest.mark.parametrize(
    "endpoints", [(), ("http://127.0.0.1:4566",), (EMULATOR, "https://s3.us-east-1.amazonaws.com")]
)
def test_an_emulator_beside_aws_is_refused(endpoints):
    """Its buckets have no rule against plain HTTP: such a stack must never reach AWS."""
    raw = {"emulatorEndpoint": EMULATOR}
    only(raw, "emulatorEndpoint", says="every service in aws:endpoints", endpoints=frozenset(endpoints))


def test_every_key_has_a_refusal_or_takes_anything():
    """Booleans are checked by their type (keepData stands for them); nodePackage has a test of its own."""
    free = {"nodePackage"} | {key.name for key in KEYS if key.kind == "boolean"}
    numbers = {key.name for key in KEYS if key.kind == "integer"}
    tried = {case[0] for case in (*BAD, *REFUSED)} | {"slackWebhook"} | {key.name for key in DECLARED}
    assert {key.name for key in KEYS} - tried - free - numbers == set()
    for name in numbers - tried:
        assert errors({name: -1}) or errors({name: 10**11}), name


def test_all_mistakes_come_at_once_in_the_order_of_the_keys():
    raw = {"tags": ["x"], "sshKeyName": "me", "gpuNodeCount": "-1", "clusterName": "Train", "efa": "yes", "typo": 1}
    with pytest.raises(ConfigError) as caught:
        taken(raw)
    keys = [mistake.key for mistake in caught.value.mistakes]
    assert keys == ["typo", "clusterName", "gpuNodeCount", "efa", "sshKeyName", "tags"]
    lines = str(caught.value).splitlines()
    assert lines[0] == "6 mistakes in the stack's configuration; nothing was created."
    assert all("saw" in line and "wanted" in line for line in lines[1:])


def test_a_zone_that_does_not_offer_the_type():
    raw = {"availabilityZones": ["us-east-1b"], **P5}
    only(raw, "availabilityZones", says="offers p5.48xlarge: us-east-1c", lookup=lambda _: offer(REGION, ("c",)))
    only({}, "availabilityZones", says="a region that offers g6.xlarge", lookup=lambda _: offer(REGION, ()))
    one = ZoneOffering((Zone("us-east-1a", "use1-az1"),), None)
    only({}, "availabilityZones", says="two availability zones", lookup=lambda _: one)


def test_the_zone_is_chosen_where_the_type_is_offered():
    chosen = read({}, REGION, lambda _: offer(REGION, ("c",))).network.zones
    assert (chosen.gpu_name, chosen.home_id) == ("us-east-1c", "use1-az3")
    assert chosen.names[1] == "us-east-1a"
    by_id = taken({"availabilityZones": ["use1-az2"]}).network.zones
    assert by_id.gpu_name == "us-east-1b"


def test_no_zone_is_asked_for_a_type_that_does_not_exist():
    def lookup(instance_type):
        raise AssertionError(f"asked AWS for {instance_type}")

    only({"gpuInstanceType": "h100"}, "gpuInstanceType", says="for example", lookup=lookup)


def test_the_region_must_be_given():
    only({}, "aws:region", says="pulumi config set aws:region", region="")


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.slack.com/services/T0/B0/x",
        "https://hooks.slack.com.evil.example/services/T0/B0/x",
        "https://evil.example/services/T0/B0/x",
        "https://user@hooks.slack.com/services/T0/B0/x",
        "https://hooks.slack.com:8443/services/T0/B0/x",
        "https://hooks.slack.com:x/services/T0/B0/x",
        "https://hooks.slack.com/services/T0/B0/x?to=evil",
        "https://hooks.slack.com/other/T0/B0/x",
        "hooks.slack.com/services/T0/B0/x",
    ],
)
def test_a_webhook_of_another_host_is_refused_and_never_shown(url):
    text = only({"slackWebhook": url}, "slackWebhook", says="https://hooks.slack.com/services/", webhook_is_secret=True)
    assert url not in text
    assert "[secret]" in text


def test_a_webhook_in_plain_text_is_refused_and_never_shown():
    text = only({"slackWebhook": WEBHOOK}, "slackWebhook", says="--secret", webhook="output")
    assert "abcdefghijkl" not in text


def test_a_secret_webhook_is_kept_as_the_output_it_came_as():
    marker = object()
    found = read({"slackWebhook": WEBHOOK}, REGION, lambda _: offer(REGION), webhook=marker, webhook_is_secret=True)
    assert found.notifications.slack_webhook is marker
    assert "hooks.slack" not in repr(found)
    assert read({}, REGION, lambda _: offer(REGION), webhook=marker).notifications.slack_webhook is None


@pytest.mark.parametrize(
    ("raw", "create", "group"),
    [
        ({**P5, "gpuNodeCount": 2}, True, None),
        ({**P5, "gpuNodeCount": 1}, False, None),
        ({**P5, "gpuNodeCount": 0}, True, None),
        ({"gpuInstanceType": "g6.xlarge", "gpuNodeCount": 4}, False, None),
        ({"gpuInstanceType": "g6.xlarge", "placementGroup": "cluster"}, True, None),
        ({**P5, "gpuNodeCount": 2, "placementGroup": "none"}, False, None),
        ({**P5, "gpuNodeCount": 2, "placementGroup": "mine"}, False, "mine"),
        ({**BLOCK, "gpuNodeCount": 2, **ID}, False, None),
        ({**RESERVATION, **ID, "placementGroup": "mine"}, False, "mine"),
    ],
)
def test_placement_group(raw, create, group):
    nodes = taken(raw).nodes
    assert (nodes.create_placement_group, nodes.placement_group) == (create, group)


@pytest.mark.parametrize(
    ("raw", "parameter", "user"),
    [
        ({}, "/x86_64/base-oss-nvidia", "ubuntu"),
        ({"gpuInstanceType": "g5g.xlarge"}, "/arm64/base-oss-nvidia", "ubuntu"),
        ({"gpuInstanceType": "trn1.32xlarge"}, "/neuron/dlami/base/", "ubuntu"),
        ({"ami": "/aws/service/x/x86_64/amazon-linux-2023/latest"}, "amazon-linux-2023", "ec2-user"),
        ({"ami": "/golden/image", "amiUser": "trainer"}, "/golden/image", "trainer"),
        ({"ami": "ami-0123456789abcdef0"}, None, "ubuntu"),
    ],
)
def test_image(raw, parameter, user):
    image = taken(raw).image
    assert parameter in image.ssm_parameter if parameter else image.ssm_parameter is None
    assert (image.ami_id, image.user) == (None if parameter else raw["ami"], user)


def test_slurm_brings_a_head_node():
    assert taken({"orchestrator": "slurm"}).head.enabled
    assert not taken({}).head.enabled


@given(size=st.integers(1, 200_000), throughput=st.sampled_from(fsx.THROUGHPUTS_MB_S_PER_TIB), efa=st.booleans())
def test_an_fsx_size_is_taken_or_its_neighbours_are_named(size, throughput, efa):
    raw = {**P5, "fsxSizeGib": size, "fsxThroughput": throughput, "fsxEfa": efa}
    found = errors(raw)
    if fsx.valid_size(size, throughput, efa):
        assert found == {}
    else:
        low, high = fsx.nearest(size, throughput, efa)
        assert set(found) == {"fsxSizeGib"}
        assert str(low) in found["fsxSizeGib"][0]
        assert str(high) in found["fsxSizeGib"][0]


@given(st.dictionaries(st.sampled_from([key.name for key in KEYS]), st.one_of(st.text(), st.integers(), st.booleans())))
def test_any_values_end_in_settings_or_in_mistakes(raw):
    """Nothing a user writes ends in another exception, and a value that is refused is refused with its key."""
    for key in errors(raw):
        assert key in BY_NAME


@given(st.sampled_from([key for key in KEYS if key.kind == "integer"]), st.integers(-(10**12) + 1, 10**12 - 1))
def test_an_integer_reads_the_same_as_text(key, number):
    assert key.parse(number) == key.parse(str(number)) == number


def test_a_node_package_must_be_there():
    only({"nodePackage": "nowhere.pyz"}, "nodePackage", says="python -m tools.nodepackage", package_mistake=mistake)
    assert errors({"nodePackage": "anything.pyz"}, package_mistake=lambda _: None) == {}


class TestLoad:
    """What pulumi hands over: text, arrays as JSON, under namespaced keys."""

    @pytest.fixture(autouse=True)
    def pulumi_config(self):
        before, secrets = pulumi.runtime.config.CONFIG.get(), pulumi.runtime.config._SECRET_KEYS.get()
        yield
        pulumi.runtime.set_all_config(before, sorted(secrets))

    def load(self, given, secret_keys=()):
        pulumi.runtime.set_all_config(given, [*secret_keys])
        return infra.settings.load(lambda _: offer(REGION))

    def test_values_arrive_as_text(self):
        found = self.load(
            {
                "aws:region": REGION,
                "flightline:gpuNodeCount": "3",
                "flightline:keepData": "false",
                "flightline:alertEmails": json.dumps(["ops@example.com"]),
            }
        )
        assert (found.nodes.count, found.storage.keep_data) == (3, False)
        assert found.notifications.emails == ("ops@example.com",)

    def test_unknown_keys_and_a_missing_region_are_mistakes(self):
        with pytest.raises(ConfigError) as caught:
            self.load({"flightline:clusterNmae": "x"})
        assert [mistake.key for mistake in caught.value.mistakes] == ["clusterNmae", "aws:region"]

    def test_other_namespaces_are_left_alone(self):
        assert self.load({"aws:region": REGION, "datadog:apiUrl": "x"}).region == REGION

    def test_a_missing_node_package_is_a_mistake_of_the_stack(self):
        with pytest.raises(ConfigError, match="no node package"):
            self.load({"aws:region": REGION, "flightline:nodePackage": "dist/missing.pyz"})

    def test_the_endpoints_of_an_emulator_are_read(self):
        given = {"aws:region": REGION, "flightline:emulatorEndpoint": EMULATOR}
        with pytest.raises(ConfigError, match="aws:endpoints nothing"):
            self.load(given)
        services = json.dumps([{"ec2": EMULATOR, "s3": EMULATOR}])
        assert self.load({**given, "aws:endpoints": services}).emulator_endpoint == EMULATOR

    def test_the_webhook_must_be_encrypted(self):
        given = {"aws:region": REGION, "flightline:slackWebhook": WEBHOOK}
        with pytest.raises(ConfigError, match="--secret") as caught:
            self.load(given)
        assert WEBHOOK not in str(caught.value)

        async def secret():
            return await self.load(given, ["flightline:slackWebhook"]).notifications.slack_webhook.is_secret()

        assert asyncio.run(secret())


def test_project_file_runs_the_package():
    project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
    assert project["name"] == infra.settings.PROJECT
    assert Path(project["main"]).name == "infra"
    assert project["runtime"]["options"]["virtualenv"] == ".venv"
