"""The way of a training run's manifest to a node: written by the function, read by the node's role, and by it only read.

The judge of policies is ours (Allow statements, no conditions); S3 is a stand-in that keeps what it is given.
"""

import re
from datetime import datetime, timezone
from typing import Any

import pytest

from flightline.cloud.functions.training_input.data import Data, DataObject
from flightline.cloud.functions.training_input.request import read
from infra.planning import documents
from tests.infra.iam_documents import allowed, roles
from tests.infra.stacks import STACKS, planned_names
from tests.unit.functions import samples


class Kept:
    """An S3 client that writes down what it is asked."""

    def __init__(self) -> None:
        self.puts: list[str] = []
        self.copies: list[tuple[str, str]] = []

    def put_object(self, Bucket: str, Key: str, **_: Any) -> None:
        self.puts.append(f"arn:aws:s3:::{Bucket}/{Key}")

    def copy(self, source: dict[str, str], bucket: str, key: str) -> None:
        self.copies.append((f"arn:aws:s3:::{source['Bucket']}/{source['Key']}", f"arn:aws:s3:::{bucket}/{key}"))

    def get_paginator(self, _: str) -> Any:
        return self

    def paginate(self, **_: Any) -> list[dict[str, Any]]:
        return []


def prepared(stack: str, mode: str) -> tuple[Kept, str]:
    """What the function did to S3, and the manifest's address."""
    names, s3 = planned_names(stack), Kept()
    request = read(
        {
            "request_id": "req-00001",
            "job": "llama-1",
            "dataset": "c4/en",
            "model": "llama-70b",
            "data": {"prefix": "c4/", "mode": mode},
            "nodes": {"instance_ids": [samples.NODE]},
        }
    )
    thing = DataObject("c4/shard-0", 1, "etag", datetime(2026, 11, 21, tzinfo=timezone.utc))
    data = Data(s3, names.data_bucket, names.results_bucket, lambda: 100_000)
    return s3, data.prepare(request, [thing])


@pytest.mark.parametrize("stack", STACKS)
def test_a_node_reads_the_manifest_that_its_run_is_started_with(stack):
    s3, manifest = prepared(stack, "list")
    (written,) = s3.puts
    assert written == f"arn:aws:s3:::{manifest.removeprefix('s3://')}"
    node, function = (roles(stack)[role].values() for role in ("node", "training-input"))
    assert allowed(function, "s3:PutObject", written)
    assert allowed(node, "s3:GetObject", written)
    assert not allowed(node, "s3:PutObject", written)
    assert not allowed(node, "s3:DeleteObject", written)
    assert re.fullmatch(documents.training()["parameters"]["manifest"]["allowedPattern"], manifest)


@pytest.mark.parametrize("stack", STACKS)
def test_staged_objects_are_copied_with_their_tags_and_read_by_a_node(stack):
    s3, _ = prepared(stack, "stage")
    ((source, target),) = s3.copies
    node, function = (roles(stack)[role].values() for role in ("node", "training-input"))
    for action, resource in (
        ("s3:GetObject", source),
        ("s3:GetObjectTagging", source),
        ("s3:PutObject", target),
        ("s3:PutObjectTagging", target),
    ):
        assert allowed(function, action, resource), (action, resource)
    assert not allowed(function, "s3:PutObjectTagging", source)
    assert allowed(node, "s3:GetObject", target)
