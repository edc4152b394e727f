"""Lifecycle rules of the buckets, in the shape of pulumi_aws.s3.BucketLifecycleConfiguration's rules.

Current objects of data and checkpoints are never expired: only their owner knows when they are done with. Old versions
are, or versioning would keep every overwritten checkpoint for ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

BUNDLES_PREFIX = "bundles/"
"""Raw outputs of failed nodes in the results bucket."""

HOOK_MIN = 120
"""The most that a hook waits. Source: EC2 Auto Scaling API reference, PutLifecycleHook (HeartbeatTimeout, 7,200 s)."""
WORD_MIN = 10
"""Of that for the way from a node's word in S3 to the group, tries of both sides included. Nobody prolongs a wait: the
right to do so would be one over every node (alert_router/hooks.py)."""
MOST_MIN = HOOK_MIN - WORD_MIN
ANSWER, ORDER = "/stdout", "/asked.json.zlib"
"""Ends of the keys that the verdict function is told of: a node's answer, and what a run asks (cloud/orders.py)."""

BOOT_OUTCOME = "/outcome.json"
"""What each boot came to: the object that the alert router is told of."""


def hook_s(minutes: int) -> int:
    """The seconds that a hook waits for what may take so many minutes."""
    return (minutes + WORD_MIN) * 60


@dataclass(frozen=True)
class Keep:
    """How long a bucket keeps what nobody reads any more."""

    unfinished_uploads_days: int
    old_versions_days: int
    bundles_days: int | None = None
    everything_days: int | None = None
    infrequent_access_days: int | None = None


_KEPT: Mapping[str, Keep] = MappingProxyType(
    {
        "data": Keep(unfinished_uploads_days=7, old_versions_days=90, infrequent_access_days=30),
        # A checkpoint of a large model is terabytes: an unfinished upload costs as much as a finished one.
        "checkpoints": Keep(unfinished_uploads_days=2, old_versions_days=14),
        "results": Keep(unfinished_uploads_days=7, old_versions_days=30, bundles_days=365),
        # Files on their way to nodes, module arguments included: the connection removes them, a killed one cannot.
        "transfer": Keep(unfinished_uploads_days=1, old_versions_days=1, everything_days=1),
    }
)
PURPOSES = tuple(_KEPT)
_THROWAWAY_OLD_VERSIONS_DAYS = 1


def rules(purpose: str, keep_data: bool) -> list[dict[str, Any]]:
    """Rules of the bucket of a purpose, one of PURPOSES. Raises KeyError for another.

    keep_data False (a stack that may be thrown away) keeps old versions for a day only.
    """
    keep = _KEPT[purpose]
    old_versions = keep.old_versions_days if keep_data else _THROWAWAY_OLD_VERSIONS_DAYS
    found: list[dict[str, Any]] = [
        _rule(
            "abort-unfinished-uploads",
            abort_incomplete_multipart_upload={"days_after_initiation": keep.unfinished_uploads_days},
        ),
        _rule("expire-old-versions", noncurrent_version_expiration={"noncurrent_days": old_versions}),
    ]
    if keep.bundles_days:
        found.append(_rule("expire-bundles", BUNDLES_PREFIX, expiration={"days": keep.bundles_days}))
    if keep.everything_days:
        found.append(_rule("expire-everything", expiration={"days": keep.everything_days}))
    if keep.infrequent_access_days:
        move = {"days": keep.infrequent_access_days, "storage_class": "INTELLIGENT_TIERING"}
        found.append(_rule("tier-what-is-not-read", transitions=[move]))
    return found


def _rule(rule_id: str, prefix: str = "", **actions: Any) -> dict[str, Any]:
    return {"id": rule_id, "status": "Enabled", "filter": {"prefix": prefix}, **actions}
