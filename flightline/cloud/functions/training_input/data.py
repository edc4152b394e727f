"""The training data in S3: list it, link it or copy it, and write down what there is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..common.errors import InvalidEvent, TryAgain
from .request import MAX_OBJECTS, StagingRequest

LINK_SECONDS = 12 * 3600
"""A link signed with a role's credentials ends with them, whatever it says. Source: S3 user guide, presigned URLs."""
SAFETY_MS = 30_000
STAGED = "staged"


@dataclass(frozen=True)
class DataObject:
    """One object of the data set."""

    key: str
    size: int
    etag: str
    modified: datetime


@dataclass(frozen=True)
class Data:
    """client: S3. left_ms: how much time the invocation has left."""

    client: Any
    data_bucket: str
    results_bucket: str
    left_ms: Callable[[], int]

    def find(self, request: StagingRequest) -> list[DataObject]:
        """Objects under the prefix, in order of their keys. Raises InvalidEvent when there are none, or far too many."""
        found: list[DataObject] = []
        most = MAX_OBJECTS[request.mode]
        for thing in self._listed(request.prefix):
            if not _wanted(thing.key, request.suffixes):
                continue
            if len(found) == most:
                text = f"more than {most:,} objects under {request.prefix}, the most for mode {request.mode}"
                raise InvalidEvent(f"{text}: name a narrower prefix")
            found.append(thing)
        if not found:
            raise InvalidEvent(f"no objects under s3://{self.data_bucket}/{request.prefix}: is the prefix right?")
        return found

    def prepare(self, request: StagingRequest, things: Sequence[DataObject]) -> str:
        """Stage or link the objects as the request says, and write the manifest; returns its s3:// address."""
        there = {thing.key: thing for thing in self._listed(_target(request, ""))} if request.mode == "stage" else {}
        rows = [self._row(request, thing, there) for thing in things]
        body = {
            "request_id": request.request_id,
            "job": request.job,
            "dataset": request.dataset,
            "bucket": self.data_bucket,
            "mode": request.mode,
            "bytes": sum(thing.size for thing in things),
            "objects": rows,
        }
        key = f"training/{request.job}/{request.request_id}.json"
        text = json.dumps(body, separators=(",", ":")).encode()
        self.client.put_object(Bucket=self.results_bucket, Key=key, Body=text, ContentType="application/json")
        return f"s3://{self.results_bucket}/{key}"

    def _listed(self, prefix: str) -> Iterator[DataObject]:
        for page in self.client.get_paginator("list_objects_v2").paginate(Bucket=self.data_bucket, Prefix=prefix):
            yield from map(_thing, page.get("Contents", []))

    def _row(self, request: StagingRequest, thing: DataObject, there: Mapping[str, DataObject]) -> dict[str, Any]:
        row: dict[str, Any] = {"key": thing.key, "size": thing.size, "etag": thing.etag}
        if request.mode == "presign":
            where = {"Bucket": self.data_bucket, "Key": thing.key}
            row["url"] = self.client.generate_presigned_url("get_object", Params=where, ExpiresIn=LINK_SECONDS)
        if request.mode == "stage":
            row["key"] = self._stage(request, thing, there)
        return row

    def _stage(self, request: StagingRequest, thing: DataObject, there: Mapping[str, DataObject]) -> str:
        """Copy one object inside S3; what an earlier try copied is left as it is, unless its source is newer."""
        target = _target(request, thing.key)
        copied = there.get(target)
        if copied and copied.size == thing.size and copied.modified >= thing.modified:
            return target
        if self.left_ms() < SAFETY_MS:
            raise TryAgain("the time of this invocation is over; what is staged stays, ask again to go on")
        self.client.copy({"Bucket": self.data_bucket, "Key": thing.key}, self.data_bucket, target)
        return target


def _target(request: StagingRequest, key: str) -> str:
    return f"{STAGED}/{request.job}/{request.request_id}/{key}"


def _thing(raw: dict[str, Any]) -> DataObject:
    return DataObject(raw["Key"], int(raw["Size"]), str(raw.get("ETag", "")).strip('"'), raw["LastModified"])


def _wanted(key: str, suffixes: Sequence[str]) -> bool:
    return not key.endswith("/") and (not suffixes or key.endswith(tuple(suffixes)))
