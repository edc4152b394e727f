"""What a job does to the file system, and what is left in the bucket behind it.

The file system and the bucket are a model of ours, after the FSx for Lustre user guide ("Automatically export updates
to your S3 bucket") and the S3 user guide ("How S3 Versioning works"): no AWS is involved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from infra.planning import fsx
from tests.infra import engine, program, stacks

LINK = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
DELETE_MARKER = None


@dataclass
class Bucket:
    """Objects, each with its versions, newest last; without versioning the last one is all there is."""

    versioned: bool
    objects: dict[str, list[bytes | None]] = field(default_factory=dict)

    def put(self, key: str, body: bytes | None) -> None:
        if self.versioned:
            self.objects.setdefault(key, []).append(body)
        elif body is DELETE_MARKER:
            self.objects.pop(key, None)
        else:
            self.objects[key] = [body]


@dataclass
class FileSystem:
    """Files imported from a bucket; events that the policy names are exported."""

    bucket: Bucket
    exported: frozenset[str]
    files: dict[str, bytes] = field(default_factory=dict)

    def write(self, path: str, body: bytes) -> None:
        event = "CHANGED" if path in self.files else "NEW"
        self.files[path] = body
        if event in self.exported:
            self.bucket.put(path, body)

    def remove(self, paths: Iterable[str]) -> None:
        for path in list(paths):
            del self.files[path]
            if "DELETED" in self.exported:
                self.bucket.put(path, DELETE_MARKER)


SHARDS = {f"tokens/shard-{number}": b"data" for number in range(3)}


def linked(run: engine.Run) -> FileSystem:
    """The model as a stack's resources set it up, with a data set in it."""
    (link,) = run.of(LINK)
    policy: Mapping[str, Any] = link.props["s3"].get("autoExportPolicy") or {}
    name = link.props["dataRepositoryPath"].removeprefix("s3://").split("/")[0]
    versioning = run.of("aws:s3/bucketVersioning:BucketVersioning")
    on = {one.props["bucket"] for one in versioning if one.props["versioningConfiguration"]["status"] == "Enabled"}
    bucket = Bucket(name in on)
    for key, body in SHARDS.items():
        bucket.put(key, body)
    return FileSystem(bucket, frozenset(policy.get("events", ())), dict(SHARDS))


LINKED_STACKS = [name for name in stacks.STACKS if stacks.values(name).get("fsxDataRepository")]


def runs() -> list[Any]:
    chosen = [pytest.param(lambda name=name: program.planned(name), id=name) for name in LINKED_STACKS]
    return [*chosen, pytest.param(program.full, id="full, exporting")]


def test_there_are_stacks_to_look_at():
    assert {"p5-reservation", "p5en-capacity-block", "spot"} <= set(LINKED_STACKS)


@pytest.mark.parametrize("planned", runs())
def test_the_data_set_survives_whatever_a_node_does(planned):
    """rm -rf, an overwritten shard, and one that is removed and written anew."""
    system = linked(planned())
    system.write("tokens/shard-1", b"overwritten")
    system.remove(["tokens/shard-2"])
    system.write("tokens/shard-2", b"written anew")
    system.remove(system.files)
    for key, body in SHARDS.items():
        assert body in system.bucket.objects[key], f"{key} is lost"
        assert system.bucket.objects[key][-1] is not DELETE_MARKER, f"{key} is deleted"


@pytest.mark.parametrize("stack", LINKED_STACKS)
def test_an_example_only_imports(stack):
    (link,) = program.planned(stack).of(LINK)
    assert "autoExportPolicy" not in link.props["s3"]
    assert link.props["s3"]["autoImportPolicy"]["events"] == list(fsx.IMPORT_EVENTS)


def test_no_choice_exports_deletions():
    assert not [choice for choice, events in fsx.EXPORT_EVENTS.items() if "DELETED" in events]


def test_the_model_can_lose_data():
    """With deletions exported and no versions, as a check of the model itself."""
    bucket = Bucket(versioned=False)
    bucket.put("a", b"data")
    FileSystem(bucket, frozenset({"DELETED"}), {"a": b"data"}).remove(["a"])
    assert bucket.objects == {}
