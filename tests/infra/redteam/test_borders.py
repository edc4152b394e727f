"""What leaves the stack's borders: whose buckets a node can write to, by whose key things lie, who may scale for it.

Policies are the plan's; IAM and endpoint policies are judged by the evaluator beside this file, not by AWS.
"""

import json

import pytest

from flightline_node.know import expected
from infra.planning import alarms, keys
from infra.planning.endpoints import WITHOUT_POLICY
from tests.infra import program
from tests.infra.redteam.attempts import bucket_policies, node_context, rights, role_policies
from tests.infra.redteam.evaluator import Request, allowed
from tests.infra.redteam.world import NAMES, PLACE, STACK, Node
from tests.infra.stacks import STACKS, settings

OTHERS, THIEF = "999999999999", "arn:aws:s3:::thief"
ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
NODE = Node("gpu-01", 1, "i-0123456789abcdef0", "10.0.101.7")
WRITES = ("PutObject", "PutObjectTagging", "DeleteObject", "CreateBucket", "PutBucketPolicy", "RestoreObject")
READ_BY_BOOTS = (
    "arn:aws:s3:::al2023-repos-us-east-2-de612dc2/core",  # Amazon Linux 2023 user guide, "Deterministic upgrades"
    "arn:aws:s3:::amazonlinux-2-repos-us-east-2/2",  # Amazon Linux 2: its repositories, as yum.conf of the AMI has them
    "arn:aws:s3:::prod-us-east-2-starport-layer-bucket/layer",  # ECR user guide, "Minimum Amazon S3 bucket permissions"
    "arn:aws:s3:::amazon-ssm-us-east-2/latest",  # Systems Manager user guide, "SSM Agent communications with S3 buckets"
    "arn:aws:s3:::aws-ssm-document-attachments-us-east-2/x",
    "arn:aws:s3:::amazoncloudwatch-agent-us-east-2/ubuntu",  # CloudWatch user guide, "Download the agent package"
    "arn:aws:s3:::aws-efa-installer/aws-efa-installer-latest.tar.gz",  # EC2 user guide, "Get started with EFA"
    "arn:aws:s3:::fsx-lustre-client-repo/ubuntu",  # FSx for Lustre user guide, "Installing the Lustre client"
)


def policy(plan, service):
    (found,) = [one.props for one in plan.of(ENDPOINT) if one.props["serviceName"].endswith(f".{service}")]
    return json.loads(found["policy"])


def through(plan, service, action, resource, owner, caller):
    """Whether an endpoint lets a call of an account's credentials through to an account's resource."""
    known = {"aws:ResourceAccount": owner, "aws:PrincipalAccount": caller, "aws:SecureTransport": "true"}
    request = Request(
        action,
        resource,
        {key: value for key, value in known.items() if value},
        f"arn:aws:iam::{caller or OTHERS}:role/x",
    )
    return allowed([], request, [policy(plan, service)])


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("caller", [PLACE.account, OTHERS], ids=["own keys", "a thief's keys"])
def test_root_on_a_node_writes_training_data_to_no_bucket_of_another_account(stack, caller):
    plan = program.planned(stack)
    for action in WRITES:
        assert not through(plan, "s3", f"s3:{action}", f"{THIEF}/shard", OTHERS, caller), action
    assert not through(
        plan, "dynamodb", "dynamodb:PutItem", f"arn:aws:dynamodb:us-east-2:{OTHERS}:table/t", OTHERS, caller
    )


def test_the_stack_s_own_and_what_boots_read_come_through():
    plan = program.planned(STACK)
    own = f"arn:aws:s3:::{NAMES.checkpoints_bucket}/x"
    assert all(through(plan, "s3", f"s3:{name}", own, PLACE.account, PLACE.account) for name in WRITES)
    for place in READ_BY_BOOTS:
        assert through(plan, "s3", "s3:GetObject", place, OTHERS, ""), place
    assert through(
        plan, "dynamodb", "dynamodb:PutItem", "arn:aws:dynamodb:us-east-2:1:table/t", PLACE.account, PLACE.account
    )


def test_interfaces_take_no_other_account_s_credentials_and_channels_without_any():
    plan = program.planned(STACK)
    names = {one.props["serviceName"].rsplit(".", 1)[1]: one.props for one in plan.of(ENDPOINT)}
    interfaces = [name for name, props in names.items() if props["vpcEndpointType"] == "Interface"]
    assert {"logs", "ssmmessages", "sts"} <= set(interfaces)
    for name in interfaces:
        assert not through(plan, name, f"{name}:Put", "*", OTHERS, OTHERS)
        assert through(plan, name, f"{name}:Put", "*", PLACE.account, PLACE.account) and through(
            plan, name, "x:y", "*", "", ""
        )
    assert {"eks", "eks-auth"} == set(WITHOUT_POLICY)


def test_a_site_may_trust_an_account():
    plan = program.run(STACK, changes={"trustedAccounts": [OTHERS]})
    assert plan.error is None and through(plan, "s3", "s3:PutObject", f"{THIEF}/x", OTHERS, PLACE.account)
    assert not through(plan, "s3", "s3:PutObject", f"{THIEF}/x", "888888888888", PLACE.account)


def test_a_bucket_that_another_account_made_under_our_name_gets_no_checkpoint():
    plan = program.planned(STACK)
    context = {**node_context(NODE), "aws:ResourceAccount": OTHERS}
    request = Request("s3:PutObject", f"arn:aws:s3:::{NAMES.checkpoints_bucket}/x", context, "arn:aws:iam::1:role/x")
    assert not allowed(role_policies(plan, NAMES.node_role), request, bucket_policies(plan))


# One key.

KEYED = {
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": "kmsMasterKeyId",
    "aws:dynamodb/table:Table": "kmsKeyArn",
    "aws:sns/topic:Topic": "kmsMasterKeyId",
    "aws:sqs/queue:Queue": "kmsMasterKeyId",
    "aws:cloudwatch/logGroup:LogGroup": "kmsKeyId",
    "aws:ec2/launchTemplate:LaunchTemplate": "kmsKeyId",
    "aws:ec2/instance:Instance": "kmsKeyId",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "kmsKeyId",
    "aws:lambda/function:Function": "kmsKeyArn",
    "aws:secretsmanager/secret:Secret": "kmsKeyId",
    "aws:cloudtrail/trail:Trail": "kmsKeyId",
    "aws:eks/cluster:Cluster": "keyArn",
}
ARN = "arn:aws:kms:us-east-2:123456789012:key/11111111-2222-3333-4444-555555555555"


def named(value, key):
    """Every value under a property, however deep."""
    if isinstance(value, dict):
        return [v for k, v in value.items() if k == key] + [one for v in value.values() for one in named(v, key)]
    return [one for v in value for one in named(v, key)] if isinstance(value, list) else []


def keyed(stack, key, changes):
    plan = program.run(stack, changes={**changes, "kmsKey": key})
    assert plan.error is None
    return plan


@pytest.mark.parametrize(("stack", "changes"), [("p5-reservation", program.FULL), ("eks", {})])
@pytest.mark.parametrize("key", ["own", ARN])
def test_one_setting_puts_everything_under_one_key(stack, changes, key):
    plan = keyed(stack, key, changes)
    wanted = plan.one("key-key").arn if key == "own" else ARN
    for kind, prop in KEYED.items():
        for one in plan.of(kind):
            assert named(dict(one.props), prop) == [wanted], one.name
    assert {kind for kind in KEYED if plan.of(kind)} >= (
        set(KEYED) - {"aws:eks/cluster:Cluster"} if changes else {"aws:eks/cluster:Cluster"}
    )
    if key == "own":
        assert plan.one("key-key").protect and plan.one("key-key").retain, "without the key no data"


@pytest.mark.parametrize(("stack", "changes"), [("p5-reservation", program.FULL), ("eks", {})])
def test_a_key_replaces_nothing_that_is_there(stack, changes):
    """What keeps the key it was made with ignores another; the default is as it was."""
    before, after = program.run(stack, changes=changes), keyed(stack, "own", changes)
    gone = {one.urn for one in before.custom} - {one.urn for one in after.custom}
    assert {urn.rpartition("::")[2] for urn in gone} <= {"notifications-key", "notifications-key-alias"}
    for kind, held in {
        "aws:fsx/lustreFileSystem:LustreFileSystem": "kmsKeyId",
        "aws:ec2/instance:Instance": "rootBlockDevice.kmsKeyId",
        "aws:eks/cluster:Cluster": "encryptionConfig",
    }.items():
        assert all(held in one.ignored for one in after.of(kind))
    for kind, prop in KEYED.items():
        if kind not in ("aws:sns/topic:Topic", "aws:eks/cluster:Cluster"):
            assert not [one.name for one in before.of(kind) if named(dict(one.props), prop)]


def test_the_key_opens_for_services_and_linked_roles_and_through_services_alone():
    whole = keys.key_policy(PLACE)
    # The first statement leaves it to IAM's policies, which are below.
    document = {**whole, "Statement": whole["Statement"][1:]}
    use = lambda role, action, **more: allowed(  # noqa: E731
        [],
        Request(action, ARN, {"kms:CallerAccount": PLACE.account, "aws:PrincipalArn": role, **more}, role),
        [document],
    )
    linked = f"arn:aws:iam::{PLACE.account}:role/aws-service-role/"
    groups = f"{linked}autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
    fsx = f"{linked}s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_fs-1"
    assert use(groups, "kms:GenerateDataKey") and use(fsx, "kms:Decrypt")
    assert use(groups, "kms:CreateGrant", **{"kms:GrantIsForAWSResource": "true"}) and not use(
        groups, "kms:CreateGrant"
    )
    assert not use(f"arn:aws:iam::{PLACE.account}:role/x", "kms:Decrypt") and not use(
        groups.replace(PLACE.account, OTHERS), "kms:Decrypt"
    )
    services = {
        name
        for one in document["Statement"]
        for name in [one["Principal"].get("Service", [])]
        for name in ([name] if isinstance(name, str) else name)
    }
    assert {
        f"logs.{PLACE.region}.amazonaws.com",
        "cloudwatch.amazonaws.com",
        "events.amazonaws.com",
        "cloudtrail.amazonaws.com",
    } <= services
    plan = keyed(STACK, ARN, {})
    role = plan.one("access-gpu-node").props["name"]
    of_s3 = {"kms:ViaService": f"s3.{PLACE.region}.amazonaws.com"}
    decrypts = [one for one in rights(plan, role) if one[0] == "kms:Decrypt"]
    assert decrypts == [("kms:Decrypt", ARN)]
    for context, may in ((of_s3, True), ({}, False)):
        assert allowed(role_policies(plan, role), Request("kms:Decrypt", ARN, context, "arn:aws:iam::1:role/x")) is may


# What else a node could reach.


def test_what_ends_nodes_does_not_hang_on_what_a_node_can_publish():
    """Root makes its own agent silent, so that the look sends nothing, and publishes that the cluster is idle."""
    plan = program.run("p5-reservation", changes={"gpuIdleHours": 2, "gpuIdleScaleIn": True, "gpuNodeMinimum": 0})
    assert plan.error is None
    policies = {one.arn for one in plan.of("aws:autoscaling/policy:Policy")}
    acting = [
        one for one in plan.of("aws:cloudwatch/metricAlarm:MetricAlarm") if policies & set(one.props["alarmActions"])
    ]
    assert len(acting) == 1 and acting[0].name.endswith(alarms.IDLE)
    metrics = {one["id"]: one["metric"] for one in acting[0].props["metricQueries"] if "metric" in one}
    (whole,) = [one["expression"] for one in acting[0].props["metricQueries"] if "expression" in one]
    (witness,) = [name for name, one in metrics.items() if one["namespace"].startswith("AWS/")]
    assert metrics[witness]["stat"] == "Maximum" and "AutoScalingGroupName" in metrics[witness]["dimensions"]
    vcpus = expected.resolve(settings("p5-reservation").nodes.instance_type).vcpus or 0
    assert whole.startswith(f"IF({witness} < {100 / vcpus:.3g}, ")


def test_root_on_fsx_is_squashed_where_the_site_says_so():
    fsx = "aws:fsx/lustreFileSystem:LustreFileSystem"
    squash = {"fsxRootSquash": "65534:65534", "fsxNoSquash": ["10.0.101.7@tcp", "10.0.102.[1-9]@tcp"]}
    (made,) = program.run("p5-reservation", changes=squash).of(fsx)
    assert made.props["rootSquashConfiguration"] == {"rootSquash": "65534:65534", "noSquashNids": squash["fsxNoSquash"]}
    assert "rootSquashConfiguration" not in program.planned("p5-reservation").of(fsx)[0].props


def test_router_and_verdict_have_invocations_of_their_own_where_the_account_has_them_to_give():
    kind, key = "aws:lambda/function:Function", "reservedConcurrentExecutions"
    assert not [one for one in program.planned("dev").of(kind) if key in one.props]
    found = {
        one.name: one.props[key]
        for one in program.run("dev", changes={"reserveConcurrency": True}).of(kind)
        if key in one.props
    }
    assert found == {"functions-alert-router": 10, "functions-verdict": 20}


@pytest.mark.parametrize("stack", ["p5-reservation", "eks"])
def test_nobody_in_the_stack_takes_a_subscription_away(stack):
    plan = program.example(stack)
    for role in plan.of("aws:iam/role:Role"):
        if any(
            one.props["role"] == role.props["name"]
            for one in plan.of("aws:iam/rolePolicyAttachment:RolePolicyAttachment")
        ):
            continue
        assert not [
            one for one in rights(plan, role.props["name"]) if one[0] in ("sns:Unsubscribe", "sns:Subscribe")
        ], role.name
