"""What the control node (the head node, or an operator's own role) may do: reach nodes, keep results, tell people."""

from flightline.contract import CALLS_PREFIX, TAG_CLUSTER
from infra.planning.iam.node import logs, managed, metrics
from infra.planning.iam.statements import Arns, Document, allow, document, of
from infra.planning.names import Names, Place

SHELL_DOCUMENT = "AWS-RunShellScript"
SESSION_DOCUMENTS = ("AWS-StartInteractiveCommand", "AWS-StartSSHSession", "SSM-SessionManagerRunShell")
_LOOK = (
    *of("autoscaling", "DescribeAutoScalingGroups", "DescribeAutoScalingInstances"),
    *of("autoscaling", "DescribeLifecycleHooks", "DescribeScalingActivities"),
    *of("ec2", "DescribeCapacityReservations", "DescribeInstanceStatus", "DescribeInstanceTopology"),
    *of("ec2", "DescribeInstanceTypes", "DescribeInstances", "DescribeRegions", "DescribeTags"),
    *of("fsx", "DescribeDataRepositoryAssociations", "DescribeFileSystems"),
    *of("ssm", "DescribeInstanceInformation", "GetCommandInvocation", "ListCommandInvocations", "ListCommands"),
)
REPLACE = ("DetachInstances", "SetInstanceHealth", "TerminateInstanceInAutoScalingGroup")
HEAL = ("CreateTags", "RebootInstances", "ReportInstanceStatus", "TerminateInstances")
ITEMS = (
    *of("dynamodb", "BatchGetItem", "BatchWriteItem", "ConditionCheckItem", "DeleteItem", "DescribeTable"),
    *of("dynamodb", "GetItem", "PutItem", "Query", "UpdateItem"),
)


def head_policies(slack: bool, names: Names, place: Place, topic_key_arn: str) -> dict[str, Document]:
    """Purpose -> document of the head node's role."""
    arns = Arns(names, place)
    return {
        "ssm": managed(arns),
        "logs": logs(arns),
        "metrics": metrics(names),
        **operator_policies(slack, names, place, topic_key_arn),
    }


def operator_policies(slack: bool, names: Names, place: Place, topic_key_arn: str) -> dict[str, Document]:
    """Purpose -> document of whoever runs the playbooks: the head node, or a person's own role."""
    arns = Arns(names, place)
    return {
        "fleet": _fleet(arns),
        "store": store(arns),
        "notify": notify(arns, topic_key_arn, slack=slack),
        "prove-monitoring": _prove_monitoring(arns),
    }


def _fleet(arns: Arns) -> Document:
    mine = {"StringEquals": {f"ssm:resourceTag/{TAG_CLUSTER}": arns.names.cluster}}
    own_nodes = {"StringEquals": {f"aws:ResourceTag/{TAG_CLUSTER}": arns.names.cluster}}
    sessions = [*map(arns.aws_document, SESSION_DOCUMENTS), arns.own_document("SSM-SessionManagerRunShell")]
    return document(
        allow("Look", _LOOK),
        allow("ReachNodes", ["ssm:SendCommand", "ssm:StartSession"], [arns.instances()], mine),
        allow(
            "RunWhat",
            ["ssm:SendCommand"],
            [arns.aws_document(SHELL_DOCUMENT), arns.own_document(arns.names.preflight_document)],
        ),
        # Takes no resource: a command's id is its only handle.
        allow("EndCommands", ["ssm:CancelCommand"]),
        allow("SessionsOf", ["ssm:StartSession"], sessions),
        allow(
            "OwnSessions",
            ["ssm:ResumeSession", "ssm:TerminateSession"],
            [arns.place.arn("ssm", "session/${aws:userid}-*")],
        ),
        allow("HostKeys", ["ec2:GetConsoleOutput"], [arns.instances()], own_nodes),
        allow("ReplaceNodes", of("autoscaling", *REPLACE), [arns.node_group()]),
        # flightline remediate; a kept instance is out of its group and known by its tag.
        allow("HealNodes", of("ec2", *HEAL), [arns.instances()], own_nodes),
    )


def _prove_monitoring(arns: Arns) -> Document:
    """playbooks/monitor.yml: a test metric and a test alert, read back from the queue that the stack has for it."""
    names, place = arns.names, arns.place
    return document(
        allow(
            "TestMetric",
            ["cloudwatch:PutMetricData"],
            condition={"StringEquals": {"cloudwatch:namespace": names.metric_namespace}},
        ),
        allow("SeeMetric", ["cloudwatch:GetMetricData"]),
        allow(
            "TestEvent",
            ["events:PutEvents"],
            [place.arn("events", "event-bus/default")],
            {"StringEquals": {"events:source": "flightline.monitor"}},
        ),
        allow("ProbeQueue", of("sqs", "GetQueueUrl", "ReceiveMessage"), [arns.queue(names.probe_queue)]),
    )


def store(arns: Arns) -> Document:
    """The run store behind a run: tables, results, files on their way."""
    names = arns.names
    tables = [*arns.table(names.results_table), *arns.table(names.training_table)]
    buckets = [arns.bucket(name) for name in (names.results_bucket, names.data_bucket, names.transfer_bucket)]
    return document(
        allow("Items", ITEMS, tables),
        allow("ListBuckets", ["s3:GetBucketLocation", "s3:ListBucket"], buckets),
        # Of an answer that somebody wrote over (flightline/cloud/vouched.py).
        allow("EarlierAnswers", ["s3:GetObjectVersion"], [arns.objects(names.results_bucket, CALLS_PREFIX)]),
        allow("ListEarlier", ["s3:ListBucketVersions"], [arns.bucket(names.results_bucket)]),
        allow("Objects", ["s3:GetObject", "s3:PutObject"], [arns.objects(names.results_bucket)]),
        # The SSM connection moves files to the nodes through a bucket of its own and removes them again.
        allow(
            "MovedFiles",
            ["s3:DeleteObject", "s3:GetObject", "s3:PutObject"],
            [arns.objects(names.transfer_bucket)],
        ),
    )


def notify(arns: Arns, topic_key_arn: str, slack: bool) -> Document:
    """Publish to the encrypted topic, and read the Slack webhook where the stack has one."""
    statements = [
        allow("Publish", ["sns:Publish"], [arns.topic()]),
        allow("TopicKey", ["kms:Decrypt", "kms:GenerateDataKey"], [topic_key_arn]),
    ]
    if slack:
        statements.append(allow("SlackWebhook", ["secretsmanager:GetSecretValue"], [arns.secret()]))
    return document(*statements)
