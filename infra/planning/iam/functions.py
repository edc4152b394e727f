"""What each Lambda function may do."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from flightline.cloud.signals import INVALID_EVENTS_PREFIX
from flightline.contract import BOOT_PREFIX, BOOT_TOLD, CALLS_PREFIX, TAG_CLUSTER
from infra.planning.functions import events_queue
from infra.planning.iam.control import notify
from infra.planning.iam.node import TRAINING_PREFIX
from infra.planning.iam.statements import WRITE_LOGS, Arns, Document, allow, document, of
from infra.planning.names import Names, Place

_CLAIM = ("dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem")
_CONSUME = ("sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")
_INSTANCES = of("ec2", "DescribeInstanceStatus", "DescribeInstances")
RUNS_PREFIX = "runs/"


def function_policies(
    function: str, slack: bool, names: Names, place: Place, topic_key_arn: str
) -> dict[str, Document]:
    """Purpose -> document of a Lambda function's role: "storage", "alert-router", "training-input" or "verdict"."""
    arns = Arns(names, place)
    return {
        "logs": _logs(arns, function),
        "failures": _failures(arns, function),
        **({"notify": notify(arns, topic_key_arn, slack)} if function != "training-input" else {}),
        "work": _WORK[function](arns),
    }


def log_group(names: Names, function: str) -> str:
    """Name of a function's log group."""
    return f"/aws/lambda/{names.functions[function]}"


def _logs(arns: Arns, function: str) -> Document:
    return document(allow("Write", WRITE_LOGS, arns.log_group(log_group(arns.names, function))))


def _failures(arns: Arns, function: str) -> Document:
    names = arns.names
    return document(
        allow("DeadLetters", ["sqs:SendMessage"], [arns.queue(names.dead_letter_queue)]),
        allow(
            "BadEvents", ["s3:PutObject"], [arns.objects(names.results_bucket, f"{INVALID_EVENTS_PREFIX}{function}/")]
        ),
    )


def _storage(arns: Arns) -> Document:
    names = arns.names
    tables = [*arns.table(names.results_table), *arns.table(names.training_table)]
    return document(
        allow("Items", [*_CLAIM, "dynamodb:BatchGetItem", "dynamodb:BatchWriteItem"], tables),
        # What is too large for an item.
        allow("Records", ["s3:PutObject"], [arns.objects(names.results_bucket, RUNS_PREFIX)]),
        allow("Replay", _CONSUME, [arns.queue(names.dead_letter_queue)]),
        # Whose a log stream is; it takes no resource.
        allow("Writers", ["ec2:DescribeInstances"]),
    )


def _alert_router(arns: Arns) -> Document:
    names = arns.names
    return document(
        allow("Items", [*_CLAIM, "dynamodb:BatchWriteItem"], arns.table(names.results_table)),
        allow("Events", _CONSUME, [arns.queue(events_queue(names, "alert-router"))]),
        allow("BootRecords", ["s3:GetObject"], [arns.objects(names.results_bucket, BOOT_PREFIX)]),
        # Of this group only, and nothing else of it: the router ends no instance that serves and changes no size.
        allow("Group", of("autoscaling", "CompleteLifecycleAction", "SuspendProcesses"), [arns.node_group()]),
        allow("TellNodes", ["s3:PutObject"], [f"{arns.objects(names.results_bucket, BOOT_PREFIX)}/{BOOT_TOLD}"]),
        # None of these takes a resource.
        allow(
            "Look",
            [
                *of("cloudwatch", "DescribeAlarmContributors", "GetMetricData"),
                *_INSTANCES,
                "autoscaling:DescribeAutoScalingInstances",
            ],
        ),
    )


def _training_input(arns: Arns) -> Document:
    names = arns.names
    mine = {"StringEquals": {f"ssm:resourceTag/{TAG_CLUSTER}": names.cluster}}
    tables = [*arns.table(names.results_table), *arns.table(names.training_table)]
    return document(
        allow("Items", _CLAIM, tables),
        allow("ListData", ["s3:ListBucket"], [arns.bucket(names.data_bucket)]),
        allow("ReadData", ["s3:GetObject"], [arns.objects(names.data_bucket)]),
        allow(
            "Stage",
            ["s3:AbortMultipartUpload", "s3:PutObject"],
            [arns.objects(names.data_bucket, "staged/"), arns.objects(names.results_bucket, TRAINING_PREFIX)],
        ),
        # S3 copies an object's tags with it, and refuses the copy to whoever may not.
        allow("ReadTags", ["s3:GetObjectTagging"], [arns.objects(names.data_bucket)]),
        allow("CopyTags", ["s3:PutObjectTagging"], [arns.objects(names.data_bucket, "staged/")]),
        allow("StartOn", ["ssm:SendCommand"], [arns.instances()], mine),
        allow("StartWhat", ["ssm:SendCommand"], [arns.own_document(names.training_document)]),
        allow("Look", ["ec2:DescribeInstances", "ssm:ListCommands"]),
    )


def _verdict(arns: Arns) -> Document:
    names = arns.names
    results, queue = names.results_bucket, arns.queue(events_queue(names, "verdict"))
    answers = {"StringLike": {"s3:prefix": f"{CALLS_PREFIX}*"}}
    return document(
        allow(
            "Items",
            [*_CLAIM, "dynamodb:BatchGetItem", "dynamodb:BatchWriteItem"],
            arns.table(names.results_table),
        ),
        allow("Events", [*_CONSUME, "sqs:ChangeMessageVisibility"], [queue]),
        allow("ListAnswers", ["s3:ListBucket", "s3:ListBucketVersions"], [arns.bucket(results)], answers),
        # Every node may write there: the one whose answer it is has sent its beginning to Systems Manager.
        allow("WhoseAnswers", ["ssm:ListCommandInvocations"]),
        allow("EarlierAnswers", ["s3:GetObjectVersion"], [arns.objects(results, CALLS_PREFIX)]),
        # Orders and records too large for an item are under runs/, where no node may write.
        allow(
            "ReadAnswers", ["s3:GetObject"], [arns.objects(results, CALLS_PREFIX), arns.objects(results, RUNS_PREFIX)]
        ),
        allow("Reports", ["s3:PutObject"], [arns.objects(results, RUNS_PREFIX)]),
    )


_WORK: Mapping[str, Callable[[Arns], Document]] = MappingProxyType(
    {"storage": _storage, "alert-router": _alert_router, "training-input": _training_input, "verdict": _verdict}
)
