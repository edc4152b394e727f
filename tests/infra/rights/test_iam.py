"""IAM documents: linted action by action, as narrow as the actions allow, and small enough to attach."""

import json
from typing import Any

import botocore.session
import parliament
import pytest

from flightline import contract
from infra.planning import iam
from infra.planning.names import FUNCTIONS
from tests.infra.iam_documents import KEY_ARN, ROLES, allowed, kubernetes_roles, roles, statements
from tests.infra.stacks import STACKS, place, planned_names

STACK = "p5en-capacity-block"
NAMES, PLACE = planned_names(STACK), place(STACK)
DOCUMENTS = {
    **{f"{role}/{purpose}": document for role, found in roles(STACK).items() for purpose, document in found.items()},
    **{
        f"kubernetes-{role}/{purpose}": document
        for role, found in kubernetes_roles(STACK).items()
        for purpose, document in found.items()
    },
    "flow-logs": iam.flow_log_policy(NAMES, PLACE),
    "tls-only": iam.tls_only(NAMES.data_bucket, PLACE),
}

ACCEPTED: dict[tuple[str, str], str] = {
    # (finding, action): why it is not a mistake.
    ("RESOURCE_MISMATCH", "s3express:CreateSession"): "parliament takes a slash in any 'bucket' resource for an object",
    (
        "RESOURCE_MISMATCH",
        "ssm:SendCommand",
    ): "document and instances stand in two statements, because only instances have the tag of the condition",
    **dict.fromkeys(
        (("RESOURCE_MISMATCH", "s3:GetObject"), ("RESOURCE_MISMATCH", "s3:PutObject")),
        "parliament takes the colon in a variable's name for one of the ARN's",
    ),
}
NEWER_THAN_THE_LINTER = {
    # action: operation of botocore's service model that shows that it exists.
    "cloudwatch:DescribeAlarmContributors": ("cloudwatch", "DescribeAlarmContributors"),
}
NO_RESOURCE = {
    # Actions that take no resource, by the linter's own table (AWS service authorization reference).
    f"{service['prefix']}:{privilege['privilege']}"
    for service in parliament.iam_definition
    for privilege in service["privileges"]
    if not any(kind["resource_type"] for kind in privilege["resource_types"])
} | set(NEWER_THAN_THE_LINTER)


def linted(document: Any) -> list[tuple[str, str, str]]:
    """(finding, action or actions, detail) of the linter."""
    policy = parliament.analyze_policy_string(json.dumps(document), include_community_auditors=True)
    found = []
    for finding in policy.findings:
        place = finding.location.get("string") or ", ".join(sorted(finding.location.get("actions", ())))
        for detail in finding.detail if isinstance(finding.detail, list) else [finding.detail]:
            action = detail["action"] if isinstance(detail, dict) else str(place)
            found.append((finding.issue, action, str(detail)))
    return found


def lint(document: Any) -> list[tuple[str, str, str]]:
    """What the linter finds, less what is accepted above."""
    newer = {("UNKNOWN_ACTION", action) for action in NEWER_THAN_THE_LINTER}
    return [item for item in linted(document) if item[:2] not in newer and item[:2] not in ACCEPTED]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_linter_finds_nothing(name):
    assert lint(DOCUMENTS[name]) == []


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({"Action": ["s3:GetObjet"]}, "UNKNOWN_ACTION"),
        ({"Action": ["sns:Publish"], "Resource": ["*"]}, "RESOURCE_STAR"),
        ({"Action": ["sns:Publish"], "Resource": ["arn:aws:s3:::bucket/*"]}, "RESOURCE_MISMATCH"),
        ({"Condition": {"StringEquals": {"s3:NoSuchKey": "x"}}}, "UNKNOWN_CONDITION_FOR_ACTION"),
        ({"Resource": ["bucket"]}, "INVALID_ARN"),
    ],
)
def test_the_linter_can_find_something(change, finding):
    statement = {"Sid": "Read", "Effect": "Allow", "Action": ["s3:GetObject"], "Resource": ["arn:aws:s3:::bucket/*"]}
    assert finding in {found for found, _, _ in lint({"Version": "2012-10-17", "Statement": [{**statement, **change}]})}


@pytest.mark.parametrize("action", NEWER_THAN_THE_LINTER)
def test_what_the_linter_does_not_know_is_an_operation(action):
    service, operation = NEWER_THAN_THE_LINTER[action]
    assert operation in botocore.session.Session().get_service_model(service).operation_names


def test_every_exception_is_still_needed():
    found = {item[:2] for document in DOCUMENTS.values() for item in linted(document)}
    assert set(ACCEPTED) <= found


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("role", ROLES)
def test_a_role_is_narrow(stack, role):
    for statement in statements(roles(stack)[role].values()):
        assert not [action for action in statement["Action"] if "*" in action]
        if "*" in statement["Resource"]:
            assert statement["Resource"] == ["*"]
            assert set(statement["Action"]) <= NO_RESOURCE, statement["Sid"]


@pytest.mark.parametrize("role", ROLES)
def test_a_role_cannot_change_who_may_do_what(role):
    services = {
        action.split(":")[0] for statement in statements(roles(STACK)[role].values()) for action in statement["Action"]
    }
    assert not services & {"iam", "sts", "organizations", "lambda", "cloudformation", "cloudtrail"}


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("role", ROLES)
def test_a_role_fits_into_its_inline_policies(stack, role):
    """IAM: inline policies of a role, 10,240 characters together, white space not counted."""
    sizes = [len(json.dumps(document, separators=(",", ":"))) for document in roles(stack)[role].values()]
    assert sum(sizes) <= 10_240


def test_sids_are_unique_and_plain():
    for document in DOCUMENTS.values():
        sids = [statement["Sid"] for statement in document["Statement"]]
        assert len(set(sids)) == len(sids)
        assert all(sid.isalnum() for sid in sids)


def object_(bucket: str, key: str) -> str:
    return f"arn:aws:s3:::{bucket}/{key}"


ANY = None
RESULTS, DATA = NAMES.results_bucket, object_(NAMES.data_bucket, "shard-0001")
PACKAGE = object_(RESULTS, NAMES.package_key("0" * 64))
BUNDLE, RECORD = (
    object_(RESULTS, f"{contract.BOOT_PREFIX}${{ec2:SourceInstanceARN}}/{name}")
    for name in ("bundle/kernel.log", "x/record.json")
)
OTHERS = object_(RESULTS, f"{contract.BOOT_PREFIX}{PLACE.arn('ec2', 'instance/i-1')}/x/record.json")
ANSWER = object_(RESULTS, f"{contract.CALLS_PREFIX}run/c/i-1/x/ask/stdout")
ASKED, OTHER_RUN, BAD_EVENT = (
    object_(RESULTS, key) for key in ("runs/x/asked.json.zlib", "runs/x.json", "bad-events/x")
)
MOVED = object_(NAMES.transfer_bucket, "i-0123456789abcdef0/AnsiballZ_setup.py")
KEPT = [object_(bucket, "runs/1/report.html") for bucket in (RESULTS, NAMES.data_bucket, NAMES.checkpoints_bucket)]
SECRET = PLACE.arn("secretsmanager", f"secret:{NAMES.slack_secret}-AbCdEf")
LOGS = PLACE.arn("logs", "log-group:")
GROUP = PLACE.arn("autoscaling", "autoScalingGroup:uuid:autoScalingGroupName/")
OWN_DOCUMENT, SHELL = (
    PLACE.arn("ssm", f"document/{NAMES.training_document}"),
    "arn:aws:ssm:us-east-2::document/AWS-RunShellScript",
)
RIGHTS: list[tuple[str, str, list, list]] = [
    ("alert-router", "autoscaling:CompleteLifecycleAction", [GROUP + NAMES.node_group], [GROUP + "another-gpu"]),
    ("node", "s3:GetObject", [PACKAGE, DATA, RECORD], [OTHERS, OTHER_RUN, BAD_EVENT]),
    # Whoever writes what a run asks orders one.
    ("node", "s3:PutObject", [BUNDLE, ANSWER], [PACKAGE, DATA, ASKED, OTHERS]),
    ("node", "s3:DeleteObject", [], [DATA]),
    # It would shorten what is kept of all nodes (inventory/group_vars/aws_ec2: cloudwatch_agent_sets_retention).
    ("node", "logs:PutRetentionPolicy", [], [ANY]),
    ("node", "logs:DescribeLogGroups", [ANY], []),
    ("node", "s3express:CreateSession", [ANY], []),
    *(
        ("node", action, [], [ANY])
        for action in ("secretsmanager:GetSecretValue", "dynamodb:Query", "ssm:GetParameter")
    ),
    *(("node", action, [], [ANY]) for action in ("ssm:SendCommand", "ssm:StartSession")),
    ("head", "secretsmanager:GetSecretValue", [SECRET], [SECRET.replace(NAMES.cluster, "other")]),
    ("head", "s3:DeleteObject", [MOVED], [*KEPT]),
    ("head", "kms:GenerateDataKey", [KEY_ARN], [KEY_ARN.replace("1111", "2222")]),
    ("training-input", "ssm:SendCommand", [OWN_DOCUMENT], [SHELL]),
    ("verdict", "s3:GetObject", [ANSWER, ASKED], [RECORD]),
    ("verdict", "s3:PutObject", [object_(RESULTS, "runs/x/report.json")], [ANSWER]),
    ("verdict", "dynamodb:PutItem", [], [PLACE.arn("dynamodb", f"table/{NAMES.training_table}")]),
    *(("verdict", action, [], [ANY]) for action in ("s3:DeleteObject", "ssm:SendCommand")),
    ("alert-router", "s3:GetObject", [RECORD], [OTHER_RUN]),
    ("alert-router", "autoscaling:SuspendProcesses", [GROUP + NAMES.node_group], [GROUP + "another-gpu"]),
    ("alert-router", "autoscaling:TerminateInstanceInAutoScalingGroup", [], [ANY]),
]
"""Role, action, what it may be done to, and what not."""


@pytest.mark.parametrize(("role", "action", "may", "may_not"), RIGHTS)
def test_a_role_may_do_that_and_no_more(role, action, may, may_not):
    documents = roles(STACK)[role].values()
    assert [one for one in may if not allowed(documents, action, one)] == []
    assert [one for one in may_not if allowed(documents, action, one)] == []


def test_what_a_stack_lacks_nobody_may_use():
    assert not allowed(roles("p5-reservation")["node"].values(), "s3express:CreateSession")
    assert not allowed(roles(STACK, slack=False)["head"].values(), "secretsmanager:GetSecretValue")


def test_a_nodes_metrics_stay_in_the_namespace_of_the_cluster():
    nodes = statements(roles(STACK)["node"].values())
    (statement,) = [item for item in nodes if "cloudwatch:PutMetricData" in item["Action"]]
    assert statement["Condition"] == {"StringEquals": {"cloudwatch:namespace": NAMES.metric_namespace}}


def test_commands_go_to_nodes_of_this_cluster_only():
    for statement in statements(roles(STACK)["head"].values()):
        if {"ssm:SendCommand", "ssm:StartSession"} & set(statement["Action"]) and any(
            "instance/" in resource for resource in statement["Resource"]
        ):
            assert statement["Condition"]["StringEquals"] == {"ssm:resourceTag/flightline:cluster": NAMES.cluster}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_writes_its_own_log_only(function):
    documents = roles(STACK)[function].values()
    own = f"{LOGS}/aws/lambda/{NAMES.functions[function]}:log-stream:x"
    other = own.replace(NAMES.functions[function], NAMES.functions[FUNCTIONS[FUNCTIONS.index(function) - 1]])
    assert allowed(documents, "logs:PutLogEvents", own)
    assert not allowed(documents, "logs:PutLogEvents", other)


def test_trust_names_one_service():
    document = iam.trust("ec2.amazonaws.com", PLACE)
    assert document["Statement"][0]["Principal"] == {"Service": "ec2.amazonaws.com"}
    assert "Condition" not in document["Statement"][0]
    flows = iam.trust("vpc-flow-logs.amazonaws.com", PLACE)
    assert flows["Statement"][0]["Condition"] == {"StringEquals": {"aws:SourceAccount": PLACE.account}}
    source = iam.trust("lambda.amazonaws.com", PLACE, "arn:aws:lambda:us-east-2:123456789012:function:x")
    assert set(source["Statement"][0]["Condition"]) == {"StringEquals", "ArnLike"}


def test_a_bucket_refuses_requests_without_tls():
    (statement,) = iam.tls_only("bucket", PLACE)["Statement"]
    assert (statement["Effect"], statement["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
    assert statement["Resource"] == ["arn:aws:s3:::bucket", "arn:aws:s3:::bucket/*"]


def test_other_partitions_keep_their_arns():
    china = planned_names(STACK), place(STACK).__class__("aws-cn", "cn-north-1", "123456789012")
    text = json.dumps(iam.flow_log_policy(*china))
    assert "arn:aws-cn:logs:cn-north-1" in text
    assert "arn:aws:" not in text
