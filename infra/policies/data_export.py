"""No node can delete or overwrite for good what lies in a bucket: not by way of a file system that writes back."""

from typing import Any, Iterator, Tuple

from .model import UNKNOWN, Answer, Broken, PolicyContext, Registered, Rule, Unsure
from .values import items, look

_LINK = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
_VERSIONING = "aws:s3/bucketVersioning:BucketVersioning"
_OLD_STYLE = "aws:fsx/lustreFileSystem:LustreFileSystem"
_EVENTS = "s3.autoExportPolicy.events"


def check(resource: Registered, site: PolicyContext) -> Iterator[Answer]:
    """Deletions are never exported."""
    if resource.type_ == _OLD_STYLE and look(resource.props, "exportPath") is not None:
        yield Broken("exportPath is set; a data repository association says what is exported")
    events = items(resource.props, _EVENTS) if resource.type_ == _LINK else []
    if UNKNOWN in events:
        yield Unsure(f"{_EVENTS} is known only during the update")
    elif any(str(event).upper() == "DELETED" for event in events):
        yield Broken(f"{_EVENTS} has DELETED; `rm` on a node would delete the objects: leave it out")


def check_stack(resources: Tuple[Registered, ...]) -> Iterator[Tuple[Registered, Answer]]:
    """What is written back goes into a bucket of this stack that keeps old versions."""
    versioned = {_versioned(one) for one in resources if one.type_ == _VERSIONING} - {None}
    for link in resources:
        if link.type_ != _LINK or not items(link.props, _EVENTS):
            continue
        path = look(link.props, "dataRepositoryPath")
        if path is UNKNOWN or (UNKNOWN in versioned and _bucket(path) not in versioned):
            yield link, Unsure("dataRepositoryPath is known only during the update")
        elif _bucket(path) not in versioned:
            yield link, Broken(f"it exports to {path}, which has no versioning here; link it for import only")


def _versioned(resource: Registered) -> Any:
    status = look(resource.props, "versioningConfiguration.status")
    return look(resource.props, "bucket") if status == "Enabled" else UNKNOWN if status is UNKNOWN else None


def _bucket(path: Any) -> str:
    return str(path).removeprefix("s3://").split("/")[0]


RULE = Rule(
    "data-export",
    "The data set outlives every node: what a job deletes or overwrites on the file system must not be lost in S3.",
    check,
    check_stack,
)
