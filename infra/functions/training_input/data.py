"""The training data in S3: list it, link it or copy it, and write down what there is."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flightline.cloud.batches import error_code

from ..common.errors import BadEvent, TryAgain
from .request import MAX_OBJECTS, Request

LINK_SECONDS = 12 * 3600
"""A link signed with a role's credentials ends with them, whatever it says. Source: S3 user guide, presigned URLs."""
SOURCE_TAG = "flightline-source-etag"
SAFETY_MS = 30_000
STAGED = "staged"


@dataclass(frozen=True)
class Thing:
    """One object of the data set."""

    key: str
    size: int
    etag: str


@dataclass(frozen=True)
class Data:
    """client: S3. left_ms: how much time the invocation has left."""

    client: Any
    data_bucket: str
    results_bucket: str
    left_ms: Callable[[], int]

    def find(self, request: Request) -> list[Thing]:
        """Objects under the prefix, in order of their keys. Raises BadEvent when there are none, or far too many."""
        found: list[Thing] = []
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.data_bucket, Prefix=request.prefix)
        for page in pages:
            found += [_thing(raw) for raw in page.get("Contents", []) if _wanted(raw["Key"], request.suffixes)]
            if len(found) > MAX_OBJECTS:
                raise BadEvent(f"more than {MAX_OBJECTS:,} objects under {request.prefix}: name a narrower prefix")
        if not found:
            raise BadEvent(f"no objects under s3://{self.data_bucket}/{request.prefix}: is the prefix right?")
        return found

    def prepare(self, request: Request, things: Sequence[Thing]) -> str:
        """Stage or link the objects as the request says, and write the manifest; returns its s3:// address."""
        rows = [self._row(request, thing) for thing in things]
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

    def _row(self, request: Request, thing: Thing) -> dict[str, Any]:
        row: dict[str, Any] = {"key": thing.key, "size": thing.size, "etag": thing.etag}
        if request.mode == "presign":
            where = {"Bucket": self.data_bucket, "Key": thing.key}
            row["url"] = self.client.generate_presigned_url("get_object", Params=where, ExpiresIn=LINK_SECONDS)
        if request.mode == "stage":
            row["key"] = self._stage(request, thing)
        return row

    def _stage(self, request: Request, thing: Thing) -> str:
        """Copy one object inside S3; what an earlier try copied is left as it is."""
        target = f"{STAGED}/{request.job}/{request.request_id}/{thing.key}"
        if self._staged(target, thing):
            return target
        if self.left_ms() < SAFETY_MS:
            raise TryAgain("the time of this invocation is over; what is staged stays, ask again to go on")
        self.client.copy(
            {"Bucket": self.data_bucket, "Key": thing.key},
            self.data_bucket,
            target,
            ExtraArgs={"Metadata": {SOURCE_TAG: thing.etag}, "MetadataDirective": "REPLACE"},
        )
        return target

    def _staged(self, target: str, thing: Thing) -> bool:
        try:
            head = self.client.head_object(Bucket=self.data_bucket, Key=target)
        except Exception as error:
            if error_code(error) in ("404", "NoSuchKey", "NotFound"):
                return False
            raise
        return bool(head["ContentLength"] == thing.size and head.get("Metadata", {}).get(SOURCE_TAG) == thing.etag)


def _thing(raw: dict[str, Any]) -> Thing:
    return Thing(raw["Key"], int(raw["Size"]), str(raw.get("ETag", "")).strip('"'))


def _wanted(key: str, suffixes: Sequence[str]) -> bool:
    return not key.endswith("/") and (not suffixes or key.endswith(tuple(suffixes)))
