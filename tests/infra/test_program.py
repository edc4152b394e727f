"""The whole program under mocks: every example stack, and one with every option on.

The engine is a stand-in (tests/infra/engine.py): ids and AWS' answers are invented, nothing is created.
"""

import json
from dataclasses import replace
from inspect import signature

import grpc
import pytest
from pulumi import Asset, AssetArchive, RunError
from pulumi_aws.config.outputs import Endpoints

from flightline import contract
from infra.planning import fsx
from infra.policies import PolicyContext, judge, judge_stack
from tests.infra import program, schema, stacks

RUNS = [*stacks.STACKS, "full"]
GROUP = "aws:autoscaling/group:Group"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
DATA = ("aws:s3/bucket:Bucket", "aws:s3/directoryBucket:DirectoryBucket", "aws:dynamodb/table:Table")
SEAL = "flightline:policy:Seal"


@pytest.mark.parametrize("preview", [False, True], ids=["up", "preview"])
@pytest.mark.parametrize("name", RUNS)
def test_the_stack_plans_clean_under_the_policies(name, preview):
    run = program.example(name, preview)
    assert run.error is None
    assert run.requests[-1].type_ == SEAL, "the seal must come last, after everything that it judges"


@pytest.mark.parametrize("name", RUNS)
def test_the_policies_find_nothing_when_they_are_run_as_functions(name):
    keep = name == "full" or stacks.settings(name).storage.keep_data
    site, seen = PolicyContext(keep, frozenset(contract.COMMON_TAGS)), program.example(name).registered
    assert len(seen) > 60
    assert [str(finding) for one in seen for finding in judge(one, site)] == []
    assert [str(finding) for finding in judge_stack(seen)] == []


@pytest.mark.parametrize("name", RUNS)
def test_every_argument_is_one_of_the_sdk_and_of_its_type(name):
    requests = program.example(name).custom
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
    good = program.example("dev").one("nodes-template")
    (text,) = schema.mistakes(replace(good, props={**good.props, **props}))
    assert wanted in text


@pytest.mark.parametrize("name", RUNS)
def test_the_outputs_are_what_the_contract_promises(name):
    run = program.example(name)
    assert contract.mistakes(run.outputs) == []
    assert set(run.outputs) == {name for output in contract.OUTPUTS for name in (output.name, *output.aliases)}


@pytest.mark.parametrize("name", RUNS)
def test_every_aws_resource_is_the_child_of_a_component(name):
    for request in program.example(name).custom:
        assert "flightline:infra:" in request.parent, request.name


@pytest.mark.parametrize("name", RUNS)
def test_every_component_registers_outputs(name):
    run = program.example(name)
    for request in run.requests:
        if request.type_.startswith("flightline:infra:"):
            assert run.component_outputs.get(request.urn), request.name


@pytest.mark.parametrize("name", RUNS)
def test_the_dependencies_have_no_cycle(name):
    requests = program.example(name).requests
    edges = {request.urn: set(request.dependencies) | ({request.parent} - {""}) for request in requests}
    known, done = set(edges), set()
    while len(done) < len(known):
        ready = {urn for urn, needs in edges.items() if urn not in done and needs & known <= done}
        assert ready, f"a cycle among {sorted(known - done)[:5]}"
        done |= ready


@pytest.mark.parametrize("name", RUNS)
def test_names_are_unique(name):
    urns = [request.urn for request in program.example(name).requests]
    assert len(urns) == len(set(urns))


def test_names_are_the_same_on_every_run():
    """Of the stack that has every option on; a preview is a run of its own."""
    first, again = program.full(), program.full(preview=True)
    assert sorted(one.urn for one in first.requests) == sorted(one.urn for one in again.requests)


IN_PLACE = {
    "aws:autoscaling/group:Group": {"desiredCapacity", "maxSize", "minSize", "tags"},
    "aws:autoscaling/lifecycleHook:LifecycleHook": {"heartbeatTimeout"},
    "aws:ec2/instance:Instance": {"volumeTags"},
    "aws:ec2/launchTemplate:LaunchTemplate": {"tagSpecifications", "userData"},
}
"""Properties beside `tags` that the provider updates in place (Terraform AWS provider: no ForceNew). A property that is
not named here counts as one whose change replaces the resource."""


def _plain(value):
    """Files by what is in them: two assets are never equal."""
    if isinstance(value, AssetArchive):
        return {name: _plain(asset) for name, asset in value.assets.items()}
    return vars(value) if isinstance(value, Asset) else value


def test_a_change_of_count_tags_and_time_limit_replaces_nothing():
    changes = {"gpuNodeCount": 9, "gpuNodeMaximum": 40, "tags": ["Owner=somebody-else"], "bootPreflightMinutes": 45}
    before, after = program.full(), program.run("p5-reservation", changes={**program.FULL, **changes})
    assert after.error is None
    assert {one.urn for one in before.requests} == {one.urn for one in after.requests}
    new, updated = {one.urn: one for one in after.requests}, set()
    for old in before.custom:
        props = new[old.urn].props
        changed = {key for key in {*old.props, *props} if _plain(old.props.get(key)) != _plain(props.get(key))}
        changed -= old.ignored
        assert changed <= {"tags"} | IN_PLACE.get(old.type_, set()), old.name
        updated |= changed
    assert {"desiredCapacity", "maxSize", "tags", "heartbeatTimeout"} <= updated, "else the test would prove nothing"


def test_an_example_that_is_linked_to_its_bucket_only_imports():
    """What is exported, where a stack asks for that, goes into a bucket with versions: the policy data-export."""
    links = [
        link
        for name in stacks.STACKS
        for link in program.example(name).of("aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation")
    ]
    assert len(links) >= 3
    for link in links:
        assert "autoExportPolicy" not in link.props["s3"]
        assert link.props["s3"]["autoImportPolicy"]["events"] == list(fsx.IMPORT_EVENTS)


def test_the_hooks_that_a_group_was_made_with_are_not_changed_later():
    """The provider makes a new group for it (terraform-provider-aws 34260), which ends every node of a running job."""
    (group,) = program.full().of(GROUP)
    assert group.props["initialLifecycleHooks"]
    assert "initialLifecycleHooks" in group.ignored


def test_data_may_go_where_the_stack_says_so():
    """That it stays everywhere else is the policy data-protection, which runs over every example above."""
    kept, thrown = program.example("p5-reservation"), program.run("p5-reservation", changes={"keepData": False})
    assert thrown.error is None
    assert [one.name for type_ in DATA for one in thrown.of(type_) if one.protect or one.retain] == []
    assert len(kept.of("aws:s3/bucket:Bucket")) == len(thrown.of("aws:s3/bucket:Bucket")) >= 3
    assert [one.props["deletionProtectionEnabled"] for one in thrown.of("aws:dynamodb/table:Table")] == [False, False]


def test_the_webhook_is_a_secret_and_appears_in_one_place_only():
    run = program.full()
    holders = [one.name for one in run.requests if "notarealwebhook" in json.dumps(one.props, default=str)]
    assert holders == ["notifications-slack-webhook"]
    assert run.one("notifications-slack-webhook").secret_props == {"secretString"}
    assert "notarealwebhook" not in json.dumps(run.outputs, default=str)


def test_every_role_is_bounded_where_the_stack_names_a_boundary():
    roles = program.full().of("aws:iam/role:Role")
    assert len(roles) >= 6
    assert {one.props.get("permissionsBoundary") for one in roles} == {program.FULL["permissionsBoundary"]}


def test_the_local_stack_sends_every_service_to_the_emulator():
    """One that is missing there would be called in AWS."""
    (services,) = stacks.config("local")["aws:endpoints"]
    modules = {
        one.type_.split(":")[1].split("/")[0] for one in [*program.full().custom, *program.example("local").custom]
    }
    renamed = {"vpc": "ec2", "costexplorer": "ce"}
    assert {renamed.get(module, module) for module in modules} <= set(services)
    known = {name.rstrip("_") for name in signature(Endpoints.__init__).parameters}  # lambda_: a word of Python's
    assert set(services) <= known, "the provider knows no such service"


@pytest.mark.parametrize(
    ("later", "first"),
    [
        # Names and ARNs are planned, so they stand in arguments as text, which the engine does not take for a dependency.
        ("functions-events", "functions-dead-letters"),
        ("functions-alert-router", "functions-alert-router-work"),
        ("functions-results", "functions-storage-from-logs"),
        ("network-flow-vpc", "network-flow-write"),
        ("audit-trail-{cluster}", "audit-trail-policy"),
        ("spending-budget-{cluster}", "notifications-alerts-policy"),
        ("spending-anomalies-{cluster}", "notifications-alerts-policy"),
        ("lustre-lustre", "lustre-servers-988-in"),
        ("nodes-group", "access-gpu-node-boot"),
        ("nodes-group", "node-package"),
        ("nodes-group", "functions-boots"),
        ("nodes-group", "functions-events-to-alert-router"),
        ("nodes-group", "network-private-1-out"),
        ("nodes-group", "fabric-https-out"),
    ],
)
def test_what_aws_looks_for_is_made_before_it_looks(later, first):
    run = program.full()
    assert first in run.before(later.format(cluster=run.outputs["cluster_name"]))


def test_mistakes_in_the_configuration_stop_before_any_resource():
    run = program.run("dev", changes={"gpuInstanceType": "m5.large", "gpuNodeCount": -1})
    assert run.requests == []
    assert "gpuInstanceType" in str(run.error) and "gpuNodeCount" in str(run.error)


GET_AMI, GET_PARAMETER = "aws:ec2/getAmi:getAmi", "aws:ssm/getParameter:getParameter"


class Refused(grpc.RpcError):
    """What the engine answers when the provider cannot."""

    def code(self):
        return grpc.StatusCode.UNKNOWN

    def details(self):
        return "InvalidAMIID.NotFound: the image id does not exist"


def refuses(args):
    raise Refused


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({GET_AMI: program.image(architecture="arm64")}, ["ami: saw ami-0123456789abcdef0 for arm64", "for x86_64"]),
        ({GET_AMI: program.image(size_gib=600)}, ["rootVolumeGib: saw 500", "at least 600 GiB"]),
        ({GET_AMI: program.image(size_gib=120)}, ["headRootVolumeGib: saw 100", "at least 120 GiB"]),
        ({GET_AMI: refuses}, ["NotFound", "set flightline:ami", "nothing was created"]),
        ({GET_PARAMETER: refuses}, ["/aws/service/deeplearning/", "NotFound", "set flightline:ami"]),
        ({"aws:index/getAvailabilityZones:getAvailabilityZones": refuses}, ["NotFound", "get-caller-identity"]),
        ({"aws:index/getCallerIdentity:getCallerIdentity": refuses}, ["NotFound", "get-caller-identity"]),
    ],
)
def test_what_aws_says_of_the_stack_stops_it_before_any_resource(said, words):
    run = program.run("p5-reservation", said=said)
    assert run.requests == []
    assert isinstance(run.error, RunError), "anything else is shown with a traceback"
    assert all(word in str(run.error) for word in words), str(run.error)


ENDPOINT_OF = {"cloudwatch": "monitoring", "kms": ""}
"""Where an endpoint has another name than the IAM prefix. SNS itself asks for the topic's key; no node calls KMS."""


@pytest.mark.parametrize("changes", [{}, {"headNode": False, "s3Express": False}], ids=["all", "less"])
def test_without_nat_every_service_that_a_node_may_call_has_its_endpoint(changes):
    run = program.run("p5en-capacity-block", changes=changes) if changes else program.planned("p5en-capacity-block")
    assert run.error is None and not run.of("aws:ec2/natGateway:NatGateway")
    documents = [
        json.loads(one.props["policy"])
        for one in run.custom
        if one.name.startswith("access-") and "policy" in one.props
    ]
    actions = {action for document in documents for one in document["Statement"] for action in one["Action"]}
    called = {action.split(":")[0] for action in actions}
    found = {one.props["serviceName"].rsplit(".", 1)[1] for one in run.of("aws:ec2/vpcEndpoint:VpcEndpoint")}
    assert {ENDPOINT_OF.get(service, service) for service in called} - {""} <= found
    assert {"s3express", "secretsmanager"} & found == (set() if changes else {"s3express", "secretsmanager"})


def test_the_cluster_makes_optional_components_only_when_asked():
    full, least = program.full(), program.planned("dev")
    for kind in ("HeadNode", "Audit", "Spending", "FileSystem"):
        assert full.of(f"flightline:infra:{kind}"), kind
    for kind in ("HeadNode", "Audit", "FileSystem"):
        assert not least.of(f"flightline:infra:{kind}"), kind
