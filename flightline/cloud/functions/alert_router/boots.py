"""What a node's boot came to: the outcome and the record that it put into S3, by which its group is told.

roles/flightline_node/files/flightline-boot writes bundles/boot/<instance's ARN>/<stamp>/record.json, then outcome.json;
S3 tells the router of the outcome. IAM lets a node write under its own ARN alone, so the key says who wrote it. A node
speaks for itself only, and what cannot be read is told as UNKNOWN, never passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flightline.cloud import batches
from flightline.contract import BOOT_PREFIX, WRITER
from flightline.tell.digest import Alert
from flightline_node.read.strictjson import once

from ..common.errors import InvalidEvent
from ..storage import records
from ..storage.records import NodeResult
from .nodes import KnownNode

CHECK, DOUBTED = "boot", "boot_outcome_doubted"
SCHEMA, ENDING = "flightline-boot/1", "flightline-ending/1"
KEY = re.compile(rf"{BOOT_PREFIX}{WRITER}/\d{{8}}T\d{{6}}Z-\d+/outcome\.json")
MAX_BYTES = 8 * 1024 * 1024
"""A record of a node of 16 devices has some 100 KiB."""

REASONS: Mapping[str, tuple[str, str]] = {
    "no-package": ("the node package could not be fetched or has another checksum; nothing was measured", "FIX_CONFIG"),
    "no-roles": (
        "the roles or the stack's variables could not be fetched or have another checksum; they were not applied",
        "FIX_CONFIG",
    ),
    "configure-timeout": (
        "the roles were not applied within configureMinutes; see configure.log in the bundle",
        "FIX_CONFIG",
    ),
    "not-configured": ("the roles could not be applied; see configure.log in the bundle", "FIX_CONFIG"),
    "timeout": ("the preflight gave no verdict within its time limit", "INVESTIGATE"),
    "no-verdict": ("the preflight ended without a verdict", "INVESTIGATE"),
    "no-go": ("no-go, but its record says nothing that blocks", "INVESTIGATE"),
}
"""Reason of a boot without a go -> what to say when no record says more, and the remedy."""


@dataclass(frozen=True)
class Boot:
    """One boot. first: its group waits for it. place: s3://. ends: none, but the word of a node whose jobs are done.

    record: as the node made it, None where there is none.
    """

    instance_id: str
    reason: str
    status: int
    first: bool
    go: bool
    place: str
    record: Mapping[str, Any] | None
    trouble: str = ""
    ends: bool = False


@dataclass(frozen=True)
class Evidence:
    """Reads boots from the results bucket. client: an S3 client."""

    client: Any
    bucket: str

    def boot(self, key: str) -> Boot:
        """The boot whose outcome lies under a key. Raises InvalidEvent when it is none, or none of this bucket."""
        named = KEY.fullmatch(key)
        if named is None:
            raise InvalidEvent(f"key {key[:120]!r}: wanted {BOOT_PREFIX}<instance's ARN>/<stamp>/outcome.json")
        folder = key.rpartition("/")[0]
        said = self._object(key)
        known = isinstance(said, Mapping) and said.get("schema") in (SCHEMA, ENDING)
        if not (known and isinstance(said, Mapping)) or said.get("instance_id") != named[1]:
            raise InvalidEvent(f"{key}: wanted an outcome ({SCHEMA}) of {named[1]} itself")
        record, trouble = self._record(f"{folder}/record.json", named[1]) if said.get("record") is True else (None, "")
        return Boot(
            instance_id=named[1],
            reason=str(said.get("reason")) if str(said.get("reason")) in REASONS else "no-verdict",
            status=said["status"] if isinstance(said.get("status"), int) else -1,
            first=said.get("first") is True,
            # A go is what its own record carries, whatever the outcome says.
            go=said.get("result") == "CONTINUE" and record is not None and record.get("verdict") == "go",
            place=f"s3://{self.bucket}/{folder}/",
            record=record,
            trouble=trouble,
            ends=said.get("schema") == ENDING,
        )

    def _record(self, key: str, instance: str) -> tuple[Mapping[str, Any] | None, str]:
        try:
            record = self._object(key)
            if not isinstance(record, Mapping) or record.get("instance_id") != instance:
                raise InvalidEvent(f"wanted a record of {instance}")
            return records.admitted(record, instance), ""
        except InvalidEvent as error:
            return None, f"its record cannot be used: {error}"

    def _object(self, key: str) -> object:
        """JSON under a key. Raises InvalidEvent for what is missing, too large or no JSON."""
        try:
            answer = self.client.get_object(Bucket=self.bucket, Key=key)
        except Exception as error:
            # Without the right to list a bucket, S3 says AccessDenied for what is not there.
            if batches.error_code(error) in ("NoSuchKey", "AccessDenied"):
                raise InvalidEvent(f"no object {key}") from None
            raise
        body = answer["Body"].read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise InvalidEvent(f"{key} has more than {MAX_BYTES:,} bytes")
        try:
            return json.loads(body, object_pairs_hook=once)
        except (ValueError, RecursionError) as error:
            raise InvalidEvent(f"{key} is not JSON: {error}") from None


def doubt(boot: Boot, known: KnownNode | None, cluster: str, group: str, since: datetime) -> str:
    """Why an outcome is no evidence, by what EC2 says of its instance; empty where it may be some.

    Any node may write outcomes, so what one says of another counts for nothing. since: launched later is a first boot.
    """
    if known is None:
        return "EC2 knows no such instance"
    if known.cluster != cluster or (group and known.group != group):
        return f"an instance of another group ({known.group or 'none'})"
    if boot.first and known.launched_s < since.timestamp():
        return "it says first boot, and the instance was launched long before"
    return ""


def doubted(boot: Boot, why: str, cluster: str, at: str) -> Alert:
    """What people are told of such outcomes: one trouble, however many there are."""
    return Alert(
        node=cluster,
        check=DOUBTED,
        status="UNKNOWN",
        message=f"a boot's outcome that is no evidence, of {boot.instance_id}: {why}; it stops and clears nothing",
        measured=boot.place,
        expected="outcomes of this group's own nodes",
        remedy="INVESTIGATE",
        remedy_text="auditTrail has who wrote it: CloudTrail's data events of the results bucket; look at that node",
        at=at,
    )


def alerts(boot: Boot, at: str) -> list[Alert]:
    """What people are told of a boot without a go: what its record says blocks, else the reason. at: UTC."""
    found: list[Alert] = []
    if boot.record is not None and boot.record.get("verdict") == "no-go":
        found = records.alerts(NodeResult("", "", boot.record))
    return found or [_without_record(boot, at)]


def _without_record(boot: Boot, at: str) -> Alert:
    words, remedy = REASONS[boot.reason]
    host = str((boot.record or {}).get("host") or "")
    message = "; ".join(part for part in (words, boot.trouble) if part)
    return Alert(
        node=boot.instance_id,
        host=host,
        instance_id=boot.instance_id,
        check=CHECK,
        status="UNKNOWN",
        message=message,
        measured=f"exit status {boot.status}",
        expected="a go",
        remedy=remedy,
        at=at,
    )


def healthy(boot: Boot) -> frozenset[tuple[str, str]]:
    """(node, check) pairs that a go shows to be over."""
    if not boot.go or boot.record is None:
        return frozenset()
    return frozenset({*records.healthy(NodeResult("", "", boot.record)), (boot.instance_id, CHECK)})


def facts(boots: Sequence[Boot]) -> tuple[str, ...]:
    """Where the raw outputs are, a line for each boot."""
    return tuple(f"{one.instance_id}: {_state(one)}, raw outputs {one.place}" for one in boots)


def _state(boot: Boot) -> str:
    return "kept out of service" if boot.first else "no-go after a reboot"
