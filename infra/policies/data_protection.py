"""Data survives a mistaken destroy, unless the stack says that it may go."""

from typing import Iterator

from .model import Answer, Broken, PolicyContext, Registered, Rule
from .values import require

TABLE = "aws:dynamodb/table:Table"
BUCKET = "aws:s3/bucket:Bucket"
DIRECTORY_BUCKET = "aws:s3/directoryBucket:DirectoryBucket"
COMPANIONS = (
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
    "aws:s3/bucketPolicy:BucketPolicy",
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    "aws:s3/bucketVersioning:BucketVersioning",
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation",
)
"""What makes a bucket private and safe, or links a file system to its bucket: what is kept would be left without."""

DATA = (TABLE, BUCKET, DIRECTORY_BUCKET, "aws:fsx/lustreFileSystem:LustreFileSystem")
"""What holds data that cannot be made again."""


def check(resource: Registered, site: PolicyContext) -> Iterator[Answer]:
    """Pulumi's own guards, and the service's where it has one."""
    if resource.type_ not in (*DATA, *COMPANIONS) or not site.keep_data:
        return
    if not resource.protect:
        yield Broken("it is not protected; ResourceOptions(protect=True) is wanted while keepData is true")
    if not resource.retain:
        yield Broken("it is deleted with the stack; ResourceOptions(retain_on_delete=True) is wanted")
    if resource.type_ == TABLE:
        yield from require(resource.props, "deletionProtectionEnabled", True)
        yield from require(resource.props, "pointInTimeRecovery.enabled", True)
    if resource.type_ in (BUCKET, DIRECTORY_BUCKET) and resource.props.get("forceDestroy"):
        yield Broken("forceDestroy is true; a bucket with data in it must refuse to go")


RULE = Rule("data-protection", "Checkpoints and results cost more than the cluster that made them.", check)
