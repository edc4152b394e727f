"""The whole program under mocks: every example stack, and one with every option on.

The engine is a stand-in (tests/infra/engine.py): ids and AWS' answers are invented, nothing is created.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from infra import contract
from infra.policies import Registered, Site, judge, judge_stack
from tests.infra import engine, program, schema, stacks

RUNS = [*stacks.STACKS, "full"]
GROUP = "aws:autoscaling/group:Group"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
DATA = ("aws:s3/bucket:Bucket", "aws:s3/directoryBucket:DirectoryBucket", "aws:dynamodb/table:Table")
SEAL = "flightline:policy:Seal"


def run_of(name: str, preview: bool = False) -> engine.Run:
    return program.full(preview) if name == "full" else program.planned(name, preview)


@pytest.mark.parametrize("preview", [False, True], ids=["up", "preview"])
@pytest.mark.parametrize("name", RUNS)
def test_the_stack_plans_clean_under_the_policies(name, preview):
    run = run_of(name, preview)
    assert run.error is None
    assert run.requests[-1].type_ == SEAL, "the seal must come last, after everything that it judges"


@pytest.mark.parametrize("name", RUNS)
def test_the_policies_find_nothing_when_they_are_run_as_functions(name):
    run = run_of(name)
    keep = name == "full" or stacks.settings(name).storage.keep_data
    site = Site(keep, frozenset(contract.COMMON_TAGS))
    seen = tuple(
        Registered(one.type_, one.name, one.props, one.protect, one.retain, one.secret_props) for one in run.requests
    )
    assert len(seen) > 60
    assert [str(finding) for one in seen for finding in judge(one, site)] == []
    assert [str(finding) for finding in judge_stack(seen)] == []


@pytest.mark.parametrize("name", RUNS)
def test_every_argument_is_one_of_the_sdk_and_of_its_type(name):
    requests = run_of(name).custom
    assert len(requests) > 50
    assert [text for request in requests for text in schema.mistakes(request)] == []


@pytest.mark.parametrize(
    ("props", "wanted"),
    [
        ({"metadataOptions": {"httpToken": "required"}}, "httpToken is no property"),
        ({"imageId": 7}, "7 is a int"),
        ({"monitoring": []}, "a list where"),
        ({"networkInterfaces": {"deviceIndex": 0}}, "a dict where a list"),
        ({"networkInterfaces": [{"deviceIndex": "0"}]}, "'0' is a str"),
        ({"updateDefaultVersion": "true"}, "'true' is a str"),
    ],
)
def test_an_unknown_or_mistyped_argument_is_noticed(props, wanted):
    good = run_of("dev").one("nodes-template")
    (text,) = schema.mistakes(replace(good, props={**good.props, **props}))
    assert wanted in text


@pytest.mark.parametrize("name", RUNS)
def test_the_outputs_are_what_the_contract_promises(name):
    run = run_of(name)
    assert contract.mistakes(run.outputs) == []
    assert set(run.outputs) == {output.name for output in contract.OUTPUTS}


@pytest.mark.parametrize("name", RUNS)
def test_every_aws_resource_is_the_child_of_a_component(name):
    for request in run_of(name).custom:
        assert "flightline:infra:" in request.parent, request.name


@pytest.mark.parametrize("name", RUNS)
def test_every_component_registers_outputs(name):
    run = run_of(name)
    for request in run.requests:
        if request.type_.startswith("flightline:infra:"):
            assert run.component_outputs.get(request.urn), request.name


@pytest.mark.parametrize("name", RUNS)
def test_the_dependencies_have_no_cycle(name):
    requests = run_of(name).requests
    edges = {request.urn: set(request.dependencies) | ({request.parent} - {""}) for request in requests}
    known, done = set(edges), set()
    while len(done) < len(known):
        ready = {urn for urn, needs in edges.items() if urn not in done and needs & known <= done}
        assert ready, f"a cycle among {sorted(known - done)[:5]}"
        done |= ready


@pytest.mark.parametrize("name", RUNS)
def test_names_are_unique_and_the_same_on_every_run(name):
    again = program.run("p5-reservation", changes=program.FULL) if name == "full" else program.run(name)
    urns = [request.urn for request in run_of(name).requests]
    assert len(urns) == len(set(urns))
    assert sorted(urns) == sorted(request.urn for request in again.requests)


REPLACES = {
    "aws:ec2/vpc:Vpc": ("cidrBlock",),
    "aws:ec2/subnet:Subnet": ("cidrBlock", "availabilityZone", "vpcId"),
    "aws:ec2/securityGroup:SecurityGroup": ("name", "description", "vpcId"),
    "aws:ec2/launchTemplate:LaunchTemplate": ("name",),
    "aws:ec2/placementGroup:PlacementGroup": ("name", "strategy"),
    "aws:ec2/instance:Instance": (
        "instanceType",
        "subnetId",
        "userData",
        "associatePublicIpAddress",
        "rootBlockDevice",
    ),
    "aws:autoscaling/group:Group": ("name",),
    "aws:autoscaling/lifecycleHook:LifecycleHook": ("name", "autoscalingGroupName"),
    "aws:dynamodb/table:Table": ("name", "hashKey", "rangeKey"),
    "aws:s3/bucket:Bucket": ("bucket",),
    "aws:s3/bucketObjectv2:BucketObjectv2": ("bucket", "key"),
    "aws:s3/directoryBucket:DirectoryBucket": ("bucket", "location"),
    "aws:fsx/lustreFileSystem:LustreFileSystem": ("subnetIds", "deploymentType", "efaEnabled", "storageType"),
    "aws:sns/topic:Topic": ("name",),
    "aws:iam/role:Role": ("name",),
    "aws:secretsmanager/secret:Secret": ("name",),
    "aws:cloudwatch/logGroup:LogGroup": ("name",),
}
"""Properties whose change makes the provider replace the resource (Terraform AWS provider, ForceNew); those used here."""


@pytest.mark.parametrize(
    "changes",
    [
        {"gpuNodeCount": 9, "gpuNodeMaximum": 40},
        {"tags": ["Owner=somebody-else", "CostCentre=42"]},
        {"bootPreflightMinutes": 45},
    ],
    ids=["count", "tags", "time-limit"],
)
def test_a_change_of_count_or_tags_replaces_nothing(changes):
    before, after = program.full(), program.run("p5-reservation", changes={**program.FULL, **changes})
    assert after.error is None
    assert {one.urn for one in before.requests} == {one.urn for one in after.requests}
    new, changed = {one.urn: one for one in after.requests}, 0
    for old in before.custom:
        for key in REPLACES.get(old.type_, ()):
            assert old.props.get(key) == new[old.urn].props.get(key), (old.name, key)
        changed += old.props != new[old.urn].props
    assert changed, "the change reached nothing, so the test would prove nothing"


def test_data_is_protected_and_retained_unless_the_stack_says_otherwise():
    kept, thrown = run_of("p5-reservation"), program.run("p5-reservation", changes={"keepData": False})
    for type_ in DATA:
        for request in kept.of(type_):
            assert request.protect and request.retain, request.name
        for request in thrown.of(type_):
            assert not request.protect and not request.retain, request.name
    assert thrown.error is None
    assert len(kept.of("aws:s3/bucket:Bucket")) == len(thrown.of("aws:s3/bucket:Bucket")) >= 3
    assert [one.props["deletionProtectionEnabled"] for one in thrown.of("aws:dynamodb/table:Table")] == [False, False]


def test_the_webhook_is_a_secret_and_appears_in_one_place_only():
    run = program.full()
    holders = [one.name for one in run.requests if "notarealwebhook" in json.dumps(one.props, default=str)]
    assert holders == ["notifications-slack-webhook"]
    assert run.one("notifications-slack-webhook").secret_props == {"secretString"}
    assert "notarealwebhook" not in json.dumps(run.outputs, default=str)


def test_mistakes_in_the_configuration_stop_before_any_resource():
    run = program.run("dev", changes={"gpuInstanceType": "m5.large", "gpuNodeCount": 0})
    assert run.requests == []
    assert "gpuInstanceType" in str(run.error) and "gpuNodeCount" in str(run.error)
