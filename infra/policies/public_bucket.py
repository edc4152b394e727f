"""No bucket can become public, by ACL, policy or accident."""

from typing import Iterator, Tuple

from .documents import grants_everybody, statements
from .encryption import missing_companions
from .model import UNKNOWN, Answer, Broken, PolicyContext, Registered, Rule, Unsure
from .values import look, require

_BLOCK = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
_SWITCHES = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
_WITH_ACL = ("aws:s3/bucketAcl:BucketAcl", "aws:s3/bucket:Bucket")


def check(resource: Registered, site: PolicyContext) -> Iterator[Answer]:
    """Public access blocks, ACLs and bucket policies."""
    if resource.type_ == _BLOCK:
        for switch in _SWITCHES:
            yield from require(resource.props, switch, True)
    if resource.type_ in _WITH_ACL:
        acl = look(resource.props, "acl")
        if acl is UNKNOWN:
            yield Unsure("acl is known only during the update")
        elif acl not in (None, "private"):
            yield Broken(f"acl is {acl!r}; leave it out")
    if resource.type_ == "aws:s3/bucketPolicy:BucketPolicy":
        yield from _policy(resource)


def _policy(resource: Registered) -> Iterator[Answer]:
    for statement in statements(look(resource.props, "policy")):
        if statement is UNKNOWN:
            yield Unsure("the bucket policy is known only during the update")
        elif grants_everybody(statement):
            yield Broken(f"statement {statement.get('Sid', '')!r} allows everybody; name the principals")


def check_stack(resources: Tuple[Registered, ...]) -> Iterator[Tuple[Registered, Answer]]:
    """Every bucket has its public access block beside it (directory buckets always block it)."""
    return missing_companions(resources, ("aws:s3/bucket:Bucket",), _BLOCK, "public access is not blocked")


RULE = Rule("public-bucket", "A bucket of checkpoints on the internet is the model given away.", check, check_stack)
