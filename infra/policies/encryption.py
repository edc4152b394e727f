"""Everything that stores data encrypts it."""

from typing import Callable, Dict, Iterator, Tuple

from .model import UNKNOWN, Answer, Broken, PolicyContext, Props, Registered, Rule, Unsure
from .values import items, look, require, require_some, truth

Check = Callable[[Props], Iterator[Answer]]


def _flag(path: str) -> Check:
    return lambda props: require(props, path, True)


def _key(path: str) -> Check:
    return lambda props: require_some(props, path, "a KMS key")


def _launch_template(props: Props) -> Iterator[Answer]:
    mappings = items(props, "blockDeviceMappings")
    if not mappings:
        yield Broken("blockDeviceMappings is not set; the root volume would take the image's setting")
    for number, mapping in enumerate(mappings):
        for answer in require(mapping, "ebs.encrypted", True):
            yield type(answer)(f"blockDeviceMappings[{number}].{answer.text}")


def _instance(props: Props) -> Iterator[Answer]:
    yield from require(props, "rootBlockDevice.encrypted", True)
    for device in items(props, "ebsBlockDevices"):
        yield from require(device, "encrypted", True)


def _queue(props: Props) -> Iterator[Answer]:
    if truth(look(props, "sqsManagedSseEnabled")) is not True:
        yield from require_some(props, "kmsMasterKeyId", "a KMS key, or sqsManagedSseEnabled,")


def _persistent(props: Props) -> Iterator[Answer]:
    if look(props, "deploymentType") in ("SCRATCH_1", "SCRATCH_2"):
        yield Broken("a scratch file system does not encrypt traffic and loses data with a server; use PERSISTENT_2")


def _kubernetes_secrets(props: Props) -> Iterator[Answer]:
    yield from require_some(props, "encryptionConfig.provider.keyArn", "a KMS key")
    covered = items(props, "encryptionConfig.resources")
    if "secrets" not in covered:
        seen = Unsure if UNKNOWN in covered else Broken
        yield seen("encryptionConfig.resources lacks secrets")


STORES: Dict[str, Check] = {
    "aws:ec2/launchTemplate:LaunchTemplate": _launch_template,
    "aws:ec2/instance:Instance": _instance,
    "aws:ebs/volume:Volume": _flag("encrypted"),
    "aws:dynamodb/table:Table": _flag("serverSideEncryption.enabled"),
    "aws:efs/fileSystem:FileSystem": _flag("encrypted"),
    "aws:sns/topic:Topic": _key("kmsMasterKeyId"),
    "aws:sqs/queue:Queue": _queue,
    "aws:fsx/lustreFileSystem:LustreFileSystem": _persistent,
    "aws:eks/cluster:Cluster": _kubernetes_secrets,
}
"""How each type that keeps data at rest says that it is encrypted; buckets are judged with their companions.

FSx for Lustre, Secrets Manager, CloudWatch Logs, Lambda and S3 directory buckets encrypt always and need no
switch. A trail's files lie in a bucket, which is judged.
"""

_ALGORITHMS = ("aws:kms", "aws:kms:dsse", "AES256")
BUCKETS = ("aws:s3/bucket:Bucket",)
_SETTING = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"


def check(resource: Registered, site: PolicyContext) -> Iterator[Answer]:
    """The resource's own setting."""
    if resource.type_ in STORES:
        yield from STORES[resource.type_](resource.props)
    if resource.type_ == _SETTING:
        for rule in items(resource.props, "rules"):
            algorithm = look(rule, "applyServerSideEncryptionByDefault.sseAlgorithm")
            if algorithm is UNKNOWN:
                yield Unsure("sseAlgorithm is known only during the update")
            elif algorithm not in _ALGORITHMS:
                yield Broken(f"sseAlgorithm is {algorithm!r}; one of {', '.join(_ALGORITHMS)} is wanted")


def check_stack(resources: Tuple[Registered, ...]) -> Iterator[Tuple[Registered, Answer]]:
    """Every bucket has its encryption setting beside it."""
    return missing_companions(resources, BUCKETS, _SETTING, "its encryption is not set")


def missing_companions(
    resources: Tuple[Registered, ...], owners: Tuple[str, ...], companion: str, problem: str
) -> Iterator[Tuple[Registered, Answer]]:
    """Buckets that no resource of the companion's type names in its property `bucket`."""
    named = [look(other.props, "bucket") for other in resources if other.type_ == companion]
    for bucket in (resource for resource in resources if resource.type_ in owners):
        if look(bucket.props, "bucket") in named and look(bucket.props, "bucket") not in (None, UNKNOWN):
            continue
        if UNKNOWN in named:
            yield bucket, Unsure(f"a {companion} names its bucket only during the update")
        else:
            yield bucket, Broken(f"{problem}: no {companion} names this bucket")


RULE = Rule("encryption-at-rest", "Weights, data and results outlive the disks they were on.", check, check_stack)
