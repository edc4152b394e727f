"""What does not belong into items: bundles, reports and large records, in S3. Objects are written once."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from .batches import RetryPolicy, error_code

TAKEN = "PreconditionFailed"
BUSY = "ConditionalRequestConflict"
"""Another request is at the key; the upload is to be tried again, which botocore leaves to us. Source: S3 API
reference, PutObject."""


def run_key(run_id: str, *parts: str) -> str:
    """Key of an object of a run; a host's name cannot climb out of it."""
    return "/".join(("runs", *(quote(part, safe="@:+,=") or "-" for part in (run_id, *parts))))


def put(client: Any, bucket: str, key: str, body: bytes, content_type: str = "application/octet-stream") -> str:
    """Keep an object unless it is there; returns its place, s3://bucket/key. Raises botocore's errors."""
    retry = RetryPolicy()
    for attempt in range(retry.attempts):
        try:
            # If-None-Match: a retry, or another run of the same id, never overwrites.
            client.put_object(Bucket=bucket, Key=key, Body=body, ContentType=content_type, IfNoneMatch="*")
        except Exception as error:
            code = error_code(error)
            if code == BUSY and attempt + 1 < retry.attempts:
                retry.wait(attempt)
                continue
            if code != TAKEN:
                raise
        break
    return f"s3://{bucket}/{key}"


def put_file(client: Any, bucket: str, key: str, path: Path, content_type: str = "application/octet-stream") -> str:
    """Keep a file. Raises botocore's errors and OSError."""
    return put(client, bucket, key, path.read_bytes(), content_type)


def get(client: Any, place: str) -> bytes:
    """An object's bytes from its place. Raises botocore's errors."""
    bucket, _, key = place.removeprefix("s3://").partition("/")
    body: bytes = client.get_object(Bucket=bucket, Key=key)["Body"].read()
    return body
