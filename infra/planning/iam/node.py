"""What a GPU node may do: be managed, judge itself and say so, ship logs and metrics, read data, keep checkpoints."""

from flightline.contract import BOOT_PREFIX, CALLS_PREFIX
from infra.planning.iam.statements import Arns, Condition, Document, allow, document, of
from infra.planning.names import Names, Place

# What the SSM agent needs for Run Command, Session Manager and State Manager, after AWS' AmazonSSMManagedInstanceCore;
# without its GetParameter on every parameter of the account.
_AGENT_MESSAGES = (
    *of("ec2messages", "AcknowledgeMessage", "DeleteMessage", "FailMessage", "GetEndpoint", "GetMessages", "SendReply"),
    *of("ssmmessages", "CreateControlChannel", "CreateDataChannel", "OpenControlChannel", "OpenDataChannel"),
)
_AGENT_ON_INSTANCES = ("ssm:ListInstanceAssociations", "ssm:PutComplianceItems", "ssm:UpdateInstanceInformation")
_AGENT_DOCUMENTS = ("ssm:DescribeDocument", "ssm:GetDocument")
_AGENT_ASSOCIATIONS = of("ssm", "DescribeAssociation", "UpdateAssociationStatus", "UpdateInstanceAssociationStatus")
_WRITE_OBJECTS = ("s3:AbortMultipartUpload", "s3:ListMultipartUploadParts", "s3:PutObject")
TRAINING_PREFIX = "training/"
"""Manifests of training runs in the results bucket, training/<job>/<request>.json."""

INSTANCE = "${ec2:SourceInstanceARN}"
ADDRESS = "${aws:Ec2InstanceSourcePrivateIPv4}"
"""Whose the credentials are: EC2 says so in every request by an instance profile, and the instance has no say in it.
Source: IAM user guide, "AWS global condition context keys". A stream's name takes no colon: there it is the address."""

_STREAMS = ("logs:CreateLogStream", "logs:DescribeLogStreams")
_LIST_BUCKET = ("s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads")


def node_policies(s3_express: bool, names: Names, place: Place, topic_key_arn: str) -> dict[str, Document]:
    """Purpose -> document of the GPU nodes' role.

    topic_key_arn is taken for the same signature as the head node's: a GPU node publishes no alert itself.
    """
    arns = Arns(names, place)
    return {
        "ssm": managed(arns),
        "boot": _boot(arns),
        "logs": logs(arns),
        "metrics": metrics(names),
        "data": data(arns, s3_express),
    }


def own_account(arns: Arns) -> Condition:
    """A bucket's ARN has no account: one that is gone can be made by somebody else."""
    return {"StringEquals": {"aws:ResourceAccount": arns.place.account}}


def managed(arns: Arns) -> Document:
    """The SSM agent."""
    own = [arns.instances(), arns.place.arn("ssm", "managed-instance/*")]
    documents = [arns.aws_document("AWS-*"), arns.aws_document("AmazonCloudWatch-*"), arns.own_document("*")]
    return document(
        allow("Messages", [*_AGENT_MESSAGES, "ssm:PutInventory"]),
        allow("Instances", _AGENT_ON_INSTANCES, own),
        allow("Documents", _AGENT_DOCUMENTS, documents),
        allow("Associations", _AGENT_ASSOCIATIONS, [arns.place.arn("ssm", "association/*"), *own, *documents]),
    )


def _boot(arns: Arns) -> Document:
    results = arns.names.results_bucket
    return document(
        allow("NodePackage", ["s3:GetObject"], [arns.objects(results, "artifacts/")]),
        # The alert router tells the group, for a lifecycle action is bound to no instance, and answers there.
        allow("Bundle", ["s3:GetObject", "s3:PutObject"], [arns.objects(results, f"{BOOT_PREFIX}{INSTANCE}/")]),
        # Systems Manager's agent chooses the rest of the key: who reads an answer asks Systems Manager whose it is.
        allow("Answers", ["s3:PutObject"], [arns.objects(results, CALLS_PREFIX)]),
    )


def logs(arns: Arns, writer: str = f"{ADDRESS}_i-") -> Document:
    """The CloudWatch agent's logs. Groups are made by the stack, with their retention; an agent makes and keeps none.

    writer: how the names of its own streams begin, as flightline_node/tell/cwagent.py has them.
    """
    groups = (arns.names.results_log_group, arns.names.system_log_group)
    return document(
        allow("Streams", _STREAMS, [arn for group in groups for arn in arns.log_group(group)]),
        allow("Write", ["logs:PutLogEvents"], [arns.log_streams(group, writer) for group in groups]),
        allow("Groups", ["logs:DescribeLogGroups"]),
    )


def metrics(names: Names) -> Document:
    """The CloudWatch agent's metrics, in the cluster's own namespace only."""
    return document(
        allow(
            "Metrics",
            ["cloudwatch:PutMetricData"],
            condition={"StringEquals": {"cloudwatch:namespace": names.metric_namespace}},
        ),
        # The agent reads the instance's tags and volumes for its dimensions; neither call takes a resource.
        allow("Dimensions", ["ec2:DescribeTags", "ec2:DescribeVolumes"]),
    )


def data(arns: Arns, express: bool) -> Document:
    """Read training data, keep checkpoints. express: the directory bucket is there."""
    names = arns.names
    buckets = [arns.bucket(names.data_bucket), arns.bucket(names.checkpoints_bucket)]
    objects = [arns.objects(names.data_bucket), arns.objects(names.checkpoints_bucket)]
    statements = [
        allow("List", _LIST_BUCKET, buckets),
        allow("Read", ["s3:GetObject"], objects),
        # What a run shall train on; the function that starts it writes it there, a node may not.
        allow("Manifest", ["s3:GetObject"], [arns.objects(names.results_bucket, TRAINING_PREFIX)]),
        # A trainer removes old checkpoints itself; the bucket is versioned, so a mistake can be taken back.
        allow("Keep", [*_WRITE_OBJECTS, "s3:DeleteObject"], [objects[1]], own_account(arns)),
    ]
    if express:
        statements.append(allow("Express", ["s3express:CreateSession"], [arns.directory_bucket()]))
    return document(*statements)
