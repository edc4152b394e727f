"""IAM documents: linted action by action, as narrow as the actions allow, and small enough to attach."""

from __future__ import annotations

import json
from typing import Any

import botocore.session
import parliament
import pytest

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
    (
        "PERMISSIONS_MANAGEMENT_ACTIONS",
        "sqs:createqueue, sqs:setqueueattributes",
    ): "the monitoring proof opens its own short-lived queue, by its name's prefix, to the cluster's topic",
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


class TestNode:
    DOCUMENTS = roles(STACK)["node"].values()

    def may(self, action, resource=None):
        return allowed(self.DOCUMENTS, action, resource)

    def test_it_enters_its_own_group_only(self):
        group = "arn:aws:autoscaling:us-east-2:123456789012:autoScalingGroup:uuid:autoScalingGroupName/"
        assert self.may("autoscaling:CompleteLifecycleAction", group + NAMES.node_group)
        assert not self.may("autoscaling:CompleteLifecycleAction", group + "another-gpu")

    def test_it_reads_the_node_package_and_cannot_replace_it(self):
        package = f"arn:aws:s3:::{NAMES.results_bucket}/{NAMES.package_key('0' * 64)}"
        assert self.may("s3:GetObject", package)
        assert not self.may("s3:PutObject", package)

    def test_it_keeps_bundles_and_cannot_read_those_of_others(self):
        bundle = f"arn:aws:s3:::{NAMES.results_bucket}/bundles/boot/i-1/bundle/kernel.log"
        assert self.may("s3:PutObject", bundle)
        assert not self.may("s3:GetObject", bundle)

    def test_it_reads_data_and_cannot_change_it(self):
        data = f"arn:aws:s3:::{NAMES.data_bucket}/shard-0001"
        assert self.may("s3:GetObject", data)
        assert not self.may("s3:PutObject", data)
        assert not self.may("s3:DeleteObject", data)

    def test_it_reads_no_secret_and_no_result(self):
        assert not self.may("secretsmanager:GetSecretValue")
        assert not self.may("dynamodb:Query")
        assert not self.may("ssm:GetParameter")

    def test_its_agent_sets_the_retention_of_its_own_groups_only(self):
        """The agent's configuration has retention_in_days (module_utils/flightline_node/tell/cwagent.py)."""
        group = f"arn:aws:logs:us-east-2:123456789012:log-group:{NAMES.results_log_group}"
        assert self.may("logs:PutRetentionPolicy", group) and self.may("logs:DescribeLogGroups")
        assert not self.may("logs:PutRetentionPolicy", "arn:aws:logs:us-east-2:123456789012:log-group:/another")

    def test_it_runs_nothing_on_other_nodes(self):
        assert not self.may("ssm:SendCommand")
        assert not self.may("ssm:StartSession")

    def test_its_metrics_stay_in_the_namespace_of_the_cluster(self):
        (statement,) = [item for item in statements(self.DOCUMENTS) if "cloudwatch:PutMetricData" in item["Action"]]
        assert statement["Condition"] == {"StringEquals": {"cloudwatch:namespace": NAMES.metric_namespace}}

    def test_express_only_where_there_is_such_a_bucket(self):
        assert self.may("s3express:CreateSession")
        assert not allowed(roles("p5-reservation")["node"].values(), "s3express:CreateSession")


class TestHead:
    DOCUMENTS = roles(STACK)["head"].values()

    def test_commands_go_to_nodes_of_this_cluster_only(self):
        for statement in statements(self.DOCUMENTS):
            if {"ssm:SendCommand", "ssm:StartSession"} & set(statement["Action"]) and any(
                "instance/" in resource for resource in statement["Resource"]
            ):
                assert statement["Condition"]["StringEquals"] == {"ssm:resourceTag/flightline:cluster": NAMES.cluster}

    def test_it_reads_the_webhook_of_this_cluster_only(self):
        secret = f"arn:aws:secretsmanager:us-east-2:123456789012:secret:{NAMES.slack_secret}-AbCdEf"
        assert allowed(self.DOCUMENTS, "secretsmanager:GetSecretValue", secret)
        assert not allowed(self.DOCUMENTS, "secretsmanager:GetSecretValue", secret.replace(NAMES.cluster, "other"))
        assert not allowed(roles(STACK, slack=False)["head"].values(), "secretsmanager:GetSecretValue")

    def test_it_deletes_files_on_their_way_to_nodes_and_nothing_else(self):
        moved = f"arn:aws:s3:::{NAMES.transfer_bucket}/i-0123456789abcdef0/AnsiballZ_setup.py"
        assert allowed(self.DOCUMENTS, "s3:DeleteObject", moved)
        for bucket in (NAMES.results_bucket, NAMES.data_bucket, NAMES.checkpoints_bucket):
            assert not allowed(self.DOCUMENTS, "s3:DeleteObject", f"arn:aws:s3:::{bucket}/runs/1/report.html")

    def test_it_uses_the_key_of_the_topic_and_no_other(self):
        assert allowed(self.DOCUMENTS, "kms:GenerateDataKey", KEY_ARN)
        assert not allowed(self.DOCUMENTS, "kms:GenerateDataKey", KEY_ARN.replace("1111", "2222"))


class TestFunctions:
    @pytest.mark.parametrize("function", FUNCTIONS)
    def test_a_function_writes_its_own_log_only(self, function):
        documents = roles(STACK)[function].values()
        own = f"arn:aws:logs:us-east-2:123456789012:log-group:/aws/lambda/{NAMES.functions[function]}:log-stream:x"
        other = own.replace(NAMES.functions[function], NAMES.functions[FUNCTIONS[FUNCTIONS.index(function) - 1]])
        assert allowed(documents, "logs:PutLogEvents", own)
        assert not allowed(documents, "logs:PutLogEvents", other)

    def test_training_input_starts_its_own_document_only(self):
        documents = roles(STACK)["training-input"].values()
        own = f"arn:aws:ssm:us-east-2:123456789012:document/{NAMES.training_document}"
        assert allowed(documents, "ssm:SendCommand", own)
        assert not allowed(documents, "ssm:SendCommand", "arn:aws:ssm:us-east-2::document/AWS-RunShellScript")


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
